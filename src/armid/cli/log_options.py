"""Old place of what `armid.cli.options` holds."""

from armid.cli.options import add_log_options as add_log_options
from armid.cli.options import check_folder as check_folder
from armid.cli.options import check_output as check_output
from armid.cli.options import kept_options as kept_options
from armid.cli.options import logs_from as logs_from
