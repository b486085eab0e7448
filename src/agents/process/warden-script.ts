import { markName } from "./child-env.ts";

/**
 * The warden, for any POSIX shell. Its input is the lifeline: `group <pid>` names the group it answers for, `now` says that
 * the leader has ended by itself, and the end of the input, which the death of our process is too, that all of it shall
 * end. It then ends the group (SIGTERM, up to 2 s, SIGKILL), and, where there is /proc, whatever has the mark in its
 * environment; it looks until it has found nothing three times, since who forks may be missed once.
 */
export const wardenScript = `
trap '' HUP INT TERM
mark="${markName}=$1"
group=
how=gently
while read -r word value; do
  case $word in
    group) group=$value ;;
    now) how=now; break ;;
  esac
done

if sleep 0.02 2>/dev/null; then step=0.05 patience=40; else step=1 patience=2; fi
strike() { test -n "$group" && kill -s "$1" -- "-$group" 2>/dev/null; }
# Where there is /proc, zombies do not count: in a container there may be nobody who reaps them.
is_there() {
  if test -r /proc/self/stat && command -v grep >/dev/null
  then test -n "$group" && grep -qE -e "\\) [^ZX] [0-9]+ $group " /proc/[0-9]*/stat 2>/dev/null
  else strike 0
  fi
}

if test "$how" = gently; then
  # We died before it was named: it may be on its way still.
  test -n "$group" || sleep 1
  strike TERM
  while test "$patience" -gt 0 && is_there; do sleep "$step"; patience=$((patience - 1)); done
fi

cd /proc 2>/dev/null || cd /
nothing=0
tries=0
while test "$nothing" -lt 3 && test "$tries" -lt 100; do
  tries=$((tries + 1))
  strike KILL
  found=$(grep -lF -e "$mark" [0-9]*/environ 2>/dev/null)
  if test -z "$found"; then nothing=$((nothing + 1)); continue; fi
  nothing=0
  for file in $found; do kill -s KILL "\${file%%/*}" 2>/dev/null; done
  sleep "$step"
done

# What was killed is gone when it is reaped; who is not reaped by anybody is not waited for.
tries=0
while test "$tries" -lt 10 && is_there; do sleep "$step"; tries=$((tries + 1)); done
exit 0
`;
