"use strict";
// A framed page is as high as what it holds.
function armidFit(frame) {
  const body = frame.contentDocument?.body;
  if (!body) return;
  const fit = () => { frame.style.height = `${Math.ceil(body.getBoundingClientRect().height) + 8}px`; };
  new ResizeObserver(fit).observe(body);
  fit();
}
