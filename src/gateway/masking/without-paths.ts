/** The result of a session tool without where files lie on this machine, which is for admins alone. */
export function withoutPaths<T extends Readonly<Record<string, unknown>>>(result: T): T {
  const { sessions } = result;
  if (!Array.isArray(sessions)) return result;
  const rows = sessions.map(({ transcriptPath: _, ...row }: Readonly<Record<string, unknown>>) => row);
  return { ...result, sessions: rows };
}
