import { listedSession } from "../../../sessions/list.ts";
import type { ListedSession } from "../../../store/contract.ts";
import { digestOfTree } from "../../../store/digest.ts";
import type { Call, FolderDeps } from "../../calls/contract.ts";
import type { Named } from "../shared/session-of.ts";
import { findSession } from "../shared/session-of.ts";

/** A session with what its entries come to, read where the index does not have it yet. */
export async function findListed(deps: FolderDeps, call: Call, named: Named): Promise<ListedSession> {
  const session = await findSession(deps, call, named);
  const listed = await listedSession(deps.store.sessions, session);
  if (listed !== null) return listed;
  return { ...session, digest: digestOfTree(await deps.readTree(session, call.signal), session.createdAt) };
}
