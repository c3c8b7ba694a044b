#!/bin/sh
# After an installation or an update of the package: the new unit counts, and a server that runs is the new one.
if [ -d /run/systemd/system ]; then
  systemctl daemon-reload
  systemctl try-restart ctxserver.service
fi
