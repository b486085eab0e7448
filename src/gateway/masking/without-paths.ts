import { mapStrings } from "../../access/redaction/map-strings.ts";
import { withoutAbsolutePaths } from "../../core/text.ts";

/** The result of a tool for a client without the scope `admin`: without the paths of session files, and of errors all paths. */
export function withoutPaths<T extends Readonly<Record<string, unknown>>>(result: T, isError: boolean): T {
  if (isError) return mapStrings(result, withoutAbsolutePaths) as T;
  const { sessions } = result;
  if (!Array.isArray(sessions)) return result;
  const rows = sessions.map(({ transcriptPath: _, ...row }: Readonly<Record<string, unknown>>) => row);
  return { ...result, sessions: rows };
}
