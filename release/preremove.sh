#!/bin/sh
# deb says "remove", rpm 0: not before an update. Data in /var/lib/ctxserver stays.
case ${1:-} in remove | 0)
  if [ -d /run/systemd/system ]; then systemctl disable --now ctxserver.service; fi
  ;;
esac
exit 0
