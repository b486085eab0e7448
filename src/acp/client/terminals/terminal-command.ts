import { describeMissingCommand, findCommand } from "../../../agents/process/find-command.ts";

/**
 * What a terminal runs. A command without arguments that is no program is a line for the shell: agents send those too.
 * Its stderr goes where its stdout goes, so that the two stay in order.
 */
export async function terminalCommand(
  { command, args }: { readonly command: string; readonly args: readonly string[] },
  env: Readonly<Record<string, string>>,
  cwd: string,
): Promise<{ readonly command: string; readonly args: readonly string[] }> {
  const found = await findCommand(command, env, cwd);
  if (found === null && (args.length > 0 || command.trim() === ""))
    throw new Error(describeMissingCommand(command));
  const program = found === null ? ["/bin/sh", "-c", command] : [found, ...args];
  return { command: "/bin/sh", args: ["-c", 'exec "$@" 2>&1', "sh", ...program] };
}
