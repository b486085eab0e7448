/** Why nothing stands for a command. */
export function absence(command: string): string {
  return command.includes("/")
    ? `the command "${command}" is not there, or may not be executed`
    : `the command "${command}" was not found on PATH`;
}
