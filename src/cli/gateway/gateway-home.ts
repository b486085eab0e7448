import { renameSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { configuredFileBoundary } from "../../app/files.ts";
import type { Recovery } from "../../app/folder.ts";
import { openFolder, writeDatabaseName } from "../../app/folder.ts";
import { openBackend } from "../../app/open-store.ts";
import type { LoadedConfig } from "../../config/load.ts";
import { databaseNameOf } from "../../config/sections/store.ts";
import type { Clock } from "../../core/clock.ts";
import { isDiskFault } from "../../core/errors.ts";
import type { Script, ScriptEngine } from "../../core/script.ts";
import { changeRows, queryRow } from "../../core/script.ts";
import { ensureAdminToken } from "../../gateway/auth/admin-token.ts";
import { createLinkCode } from "../../gateway/auth/link-codes.ts";
import { Tokens } from "../../gateway/auth/tokens.ts";
import type { Ledger } from "../../runs/contract.ts";
import { countOpenRuns } from "../../runs/ledger/schema.ts";
import { indexDbName } from "../../store/files/layout.ts";
import type { WorkCounts } from "../../store/files/recover.ts";
import { workCountsName } from "../../store/files/recover.ts";
import type { WorkingBackend } from "../../store/work.ts";

/** What a gateway keeps open for its lifetime, across reloads: its tokens and, if there is one, its database. */
export interface GatewayHome {
  /** The folder for this machine's files. It also contains the sessions, unless there is a back end. */
  readonly root: string;
  readonly tokens: Tokens;
  readonly engine: ScriptEngine;
  /** The database that several machines share. `null` if sessions are in the folder. */
  readonly backend: WorkingBackend | null;
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
  /** Whether this gateway must do the hourly work now. Gateways that share a database take turns. */
  takeTurn(): Promise<boolean>;
  /** Returns a link to this address with a one-time code that expires after ten minutes. */
  link(url: string): Promise<string>;
  /** Runs `act` while holding the folder's interprocess lock, or without a lock if there is a back end. */
  exclusively<T>(act: () => T): T;
  close(): Promise<void>;
}

/**
 * Returns a function that writes the counts of pending work to a file next to `work.db` if they have changed. The
 * next start reads the file if the database is missing. The file is not synced, because an outdated count is good
 * enough. The admin token is not counted, because it is also stored in a file. `checkInPlace` prevents writing to a
 * different folder at the same path.
 */
function workCounter(
  { root, ledger, tokens }: Pick<GatewayHome, "root" | "tokens"> & { readonly ledger: Ledger },
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
export async function openGatewayHome(
  loaded: LoadedConfig,
  clock: Clock,
  processCwd: string,
): Promise<GatewayHome> {
  const backend = await openBackend(loaded.config);
  return backend === null ? openFolderHome(loaded, clock, processCwd) : openHomeOn(backend, loaded, clock);
}

/**
 * The folder contains only the admin token, `gateway.json` and the name of the database. Each machine has its own admin
 * token.
 */
async function openHomeOn(
  backend: WorkingBackend,
  { config }: LoadedConfig,
  clock: Clock,
): Promise<GatewayHome> {
  try {
    const { engine } = backend;
    const root = config.store.path;
    const tokens = new Tokens({ engine, ledger: null }, { clock, keepsRevocations: true });
    const { tokenId, isNew } = await ensureAdminToken(root, tokens);
    const name = databaseNameOf(config);
    if (name !== null) writeDatabaseName(root, name);
    return {
      ...{ root, tokens, engine, backend },
      isFirst: isNew,
      losses: [],
      recoveries: [],
      count: async () => undefined,
      takeTurn: () => engine.change("unsynced", "gateway", () => takeHourlyTurn(clock.now())),
      link: (url) => linkTo(url, tokens, tokenId),
      exclusively: (act) => act(),
      close: () => backend.close(),
    };
  } catch (error) {
    await backend.close();
    throw error;
  }
}

const lastTurn = "hourly_work_at";
/** Less than an hour. Otherwise, a gateway that checks once an hour could skip every second round. */
const turnMs = 3_500_000;

function* takeHourlyTurn(now: number): Script<boolean> {
  const last = yield* queryRow("SELECT value FROM facts WHERE name = ?", lastTurn);
  // A time in the future was recorded by a machine whose clock was wrong.
  const isRecent = last !== undefined && Math.abs(now - Number(last.value)) < turnMs;
  if (isRecent) return false;
  yield* changeRows(
    "INSERT INTO facts (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
    lastTurn,
    String(now),
  );
  return true;
}

async function openFolderHome(loaded: LoadedConfig, clock: Clock, processCwd: string): Promise<GatewayHome> {
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
      ...{ root, tokens, engine: folder.work.engine, backend: null },
      isFirst: isNew,
      losses: [...folder.upkeep.takeUntoldLosses(), ...rebuilt],
      recoveries: found.filter((each) => !ofDatabases.includes(each)),
      count: workCounter({ root, ledger, tokens }, tokenId, () => folder.upkeep.checkInPlace()),
      takeTurn: async () => true,
      link: (url) => linkTo(url, tokens, tokenId),
      exclusively: (act) => ledger.exclusively(act),
      close: () => folder.close(),
    };
  } catch (error) {
    await folder.close();
    throw error;
  }
}

/** If the disk is full, no code can be stored, so the link contains no code. */
async function linkTo(url: string, tokens: Tokens, tokenId: string): Promise<string> {
  try {
    const { code } = await createLinkCode(tokens, { tokenId });
    return `${url}/#code=${code}`;
  } catch (error) {
    if (!isDiskFault(error)) throw error;
    return url;
  }
}
