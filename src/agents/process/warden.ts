import { spawn } from "node:child_process";

/** The environment variable that marks our child processes, so that processes that left their group can be found. */
export const markName = "SKEIN_CHILD";

/** A warden that takes longer than this is suspended or hanging, so it is killed. */
const maxWaitMs = 20_000;

/** Terminates a process group and every process with its mark, even if our own process is killed. */
export interface Warden {
  /** Sets the process group to terminate. */
  watch(group: number): void;
  /**
   * `gently` sends SIGTERM and waits up to 2 s before SIGKILL. Resolves when no process remains, or with `false` if the
   * warden itself was killed before it finished.
   */
  end(how: "gently" | "now"): Promise<boolean>;
  /** Calls `listener` if the warden exits without being asked to. */
  onLost(listener: () => void): void;
}

/**
 * Starts a warden: a shell with no open streams except stdin. It runs in a separate process session so that Ctrl-C does
 * not reach it.
 */
export async function openWarden(
  mark: string,
  { PATH }: Readonly<Record<string, string | undefined>>,
): Promise<Warden> {
  const shell = spawn("/bin/sh", ["-c", wardenScript, "skein-warden", mark], {
    cwd: "/",
    env: { PATH: [PATH, "/usr/bin", "/bin"].filter(Boolean).join(":") },
    stdio: ["pipe", "ignore", "ignore"],
    detached: true,
  });
  const { promise: exited, resolve } = Promise.withResolvers<void>();
  let isEnding = false;
  shell.once("exit", () => resolve());
  await new Promise((started, failed) => {
    shell.once("spawn", () => started(null));
    shell.once("error", failed);
  });
  // Read only after the spawn, because the pipe does not exist if the process has run out of file descriptors.
  const { stdin } = shell;
  stdin.on("error", () => undefined); // The exit event reports the failure.
  return {
    watch: (group) => void stdin.write(`group ${group}\n`),
    async end(how) {
      if (!isEnding) stdin.end(how === "now" ? "now\n" : undefined);
      isEnding = true;
      const timer = setTimeout(() => shell.kill("SIGKILL"), maxWaitMs);
      await exited;
      clearTimeout(timer);
      return shell.exitCode === 0;
    },
    onLost: (listener) => void exited.then(() => (isEnding ? undefined : listener())),
  };
}

/**
 * The warden's program, for any POSIX shell. On stdin, `group <pid>` sets the process group and `now` means that the
 * group's leader has exited. When stdin closes, which also happens when our process dies, the warden terminates the
 * group (SIGTERM, up to 2 s, SIGKILL) and, where /proc exists, every process with the mark in its environment. It
 * searches until three searches in a row find nothing, because one search can miss a process that is forking.
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
# Zombies do not count where /proc shows them: in a container nothing may reap them.
is_there() {
  if test -r /proc/self/stat && command -v grep >/dev/null
  then test -n "$group" && grep -qE -e "\\) [^ZX] [0-9]+ $group " /proc/[0-9]*/stat 2>/dev/null
  else strike 0
  fi
}

if test "$how" = gently; then
  # Our process died before it named the group; the group may still be starting.
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

# Wait for the killed processes to be reaped, but not for ones that nothing reaps.
tries=0
while test "$tries" -lt 10 && is_there; do sleep "$step"; tries=$((tries + 1)); done
exit 0
`;
