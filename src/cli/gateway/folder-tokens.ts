import { renameSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { configuredFileBoundary } from "../../app/files.ts";
import type { Recovery } from "../../app/folder.ts";
import { openFolder } from "../../app/folder.ts";
import type { LoadedConfig } from "../../config/load.ts";
import type { Clock } from "../../core/clock.ts";
import { isDiskFault } from "../../core/errors.ts";
import { ensureAdminToken } from "../../gateway/auth/admin-token.ts";
import { createLinkCode } from "../../gateway/auth/link-codes.ts";
import { Tokens } from "../../gateway/auth/tokens.ts";
import type { Ledger } from "../../runs/contract.ts";
import { countOpenRuns } from "../../runs/ledger/schema.ts";
import { indexDbName } from "../../store/files/layout.ts";
import type { WorkCounts } from "../../store/files/recover.ts";
import { workCountsName } from "../../store/files/recover.ts";

/** A folder's tokens. They stay open for the lifetime of the gateway, across reloads. */
export interface FolderTokens {
  readonly root: string;
  readonly tokens: Tokens;
  readonly ledger: Ledger;
  /** `true` if this start created the admin token. */
  readonly isFirst: boolean;
  /** One sentence for each database that has been lost or rebuilt since the last start. */
  readonly losses: readonly string[];
  /** The changes made to session files when the folder was opened, such as adoptions. */
  readonly recoveries: readonly Recovery[];
  /**
   * Records how much work is pending in `work.db` so that a later start can report what was lost if the database
   * disappears.
   */
  count(): Promise<void>;
  /** Returns a link to this address with a one-time code that expires after ten minutes. */
  link(url: string): Promise<string>;
  /** Runs `act` while holding the folder's interprocess lock. */
  exclusively<T>(act: () => T): T;
  close(): Promise<void>;
}

/**
 * Returns a function that writes the counts of pending work to a file next to `work.db` if they have changed. The
 * next start reads the file if the database is gone. The file is not synced, because an old count is good enough. The
 * admin token is not counted, because it has its own file. `checkInPlace` prevents writing to a different folder at
 * the same path.
 */
function workCounter(
  { root, ledger, tokens }: Pick<FolderTokens, "root" | "ledger" | "tokens">,
  adminTokenId: string,
  checkInPlace: () => void,
): () => Promise<void> {
  let [mark, written]: (string | null)[] = [null, null];
  return async () => {
    const now = ledger.changeMark();
    if (now === mark) return;
    const counts: WorkCounts = {
      ...countOpenRuns(ledger),
      tokens: await tokens.countOthers(adminTokenId),
    };
    const text = `${JSON.stringify(counts)}\n`;
    mark = now;
    if (text === written) return;
    checkInPlace();
    const temporary = join(root, `.${workCountsName}.tmp`);
    writeFileSync(temporary, text, { mode: 0o600 });
    renameSync(temporary, join(root, workCountsName));
    written = text;
  };
}

/** `processCwd` is the working directory for sessions if neither the session nor its agent sets one. */
export async function openFolderTokens(
  loaded: LoadedConfig,
  clock: Clock,
  processCwd: string,
): Promise<FolderTokens> {
  const { config } = loaded;
  const root = config.store.path;
  const found: Recovery[] = [];
  const files = configuredFileBoundary(loaded, { path: processCwd, users: "none" });
  const folder = await openFolder({
    root,
    durability: config.durability,
    lockTimeoutMs: config.lock.timeoutMs,
    report: (each) => void found.push(each),
    cwdFor: (place) => files.defaultCwd(place),
  });
  try {
    const { ledger } = folder.work;
    const ofDatabases = found.filter(({ kind }) => ["set_aside", "rebuilt", "salvaged"].includes(kind));
    // The folder itself records what was lost with `work.db`.
    const rebuilt = ofDatabases
      .filter(({ file }) => basename(file) === indexDbName)
      .map(({ file, note }) => `${basename(file)}: ${note}`);
    const tokens = new Tokens(folder.work, { clock, keepsRevocations: true });
    const { tokenId, isNew } = await ensureAdminToken(root, tokens);
    return {
      root,
      tokens,
      ledger,
      isFirst: isNew,
      losses: [...folder.upkeep.takeUntoldLosses(), ...rebuilt],
      recoveries: found.filter((each) => !ofDatabases.includes(each)),
      count: workCounter({ root, ledger, tokens }, tokenId, () => folder.upkeep.checkInPlace()),
      link: (url) => linkTo(url, tokens, tokenId),
      exclusively: (act) => ledger.exclusively(act),
      close: () => folder.close(),
    };
  } catch (error) {
    await folder.close();
    throw error;
  }
}

/** If the disk is full, no code can be stored, so the link is only the address. */
async function linkTo(url: string, tokens: Tokens, tokenId: string): Promise<string> {
  try {
    const { code } = await createLinkCode(tokens, { tokenId });
    return `${url}/#code=${code}`;
  } catch (error) {
    if (!isDiskFault(error)) throw error;
    return url;
  }
}
