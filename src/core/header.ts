import type { Entry, SessionHeader } from "./entries.ts";
import { currentVersion } from "./entries.ts";

/** The header of a new session, its keys in the order that pi writes. */
export function newHeader(fields: {
  id: string;
  time: number;
  cwd: string;
  parentSession?: string | undefined;
}): SessionHeader {
  const { id, time, cwd, parentSession } = fields;
  const timestamp = new Date(time).toISOString();
  const header: SessionHeader = { type: "session", version: currentVersion, id, timestamp, cwd };
  if (parentSession !== undefined) header.parentSession = parentSession;
  return header;
}

/** Entries are read as version 3 whatever they were; the header then says so too. */
export function currentHeader(header: SessionHeader): SessionHeader {
  const { type, version = 1, ...rest } = header;
  return version >= currentVersion ? header : { type, version: currentVersion, ...rest };
}

/** For a file whose header is lost: as much as the first entry and the caller know. */
export function rebuiltHeader(
  first: Entry | undefined,
  known: { id: string; cwd?: string } | undefined,
): SessionHeader {
  const time = Date.parse(first?.timestamp ?? "");
  const { id = "recovered", cwd = "" } = known ?? {};
  return newHeader({ id, time: Number.isNaN(time) ? 0 : time, cwd });
}
