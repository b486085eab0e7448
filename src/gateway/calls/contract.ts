import type { Redactor } from "../../access/redaction/redactor.ts";
import type { LoadedConfig } from "../../config/load.ts";
import type { ModelSettings } from "../../config/model-settings.ts";
import type { Config } from "../../config/sections/all.ts";
import type { Clock } from "../../core/clock.ts";
import type { SessionContext } from "../../core/context.ts";
import type { IdSource } from "../../core/ids.ts";
import type { SessionTree } from "../../core/tree.ts";
import type { FileBoundary } from "../../file-access/file-boundary.ts";
import type { MethodName, Params, Result } from "../../protocol/methods/method-table.ts";
import type { ContextPayload } from "../../protocol/session-payloads.ts";
import type { Run, RunStore } from "../../runs/contract.ts";
import type { ShowRequestOptions, Skein } from "../../sessions/skein.ts";
import type { EveryUser } from "../../sessions/users.ts";
import type { XrayOptions } from "../../sessions/xray.ts";
import type { SessionRecord, Store } from "../../store/contract.ts";
import type { ModelRef } from "../../transcript/parse-model.ts";
import type { Principal } from "../auth/principal.ts";
import type { Tokens } from "../auth/tokens.ts";

/** On whose behalf a method is called: everything that is not in its params. */
export interface Call {
  readonly principal: Principal;
  /** Whose sessions it is about, as the token says; `null`: the unnamed user's. Params that name a user are checked by then. */
  readonly userId: string | null;
  /** Has the scope `admin`: sees secrets, and paths of this machine. */
  readonly isAdmin: boolean;
  /** Comes when nobody waits for the answer any more. */
  readonly signal: AbortSignal;
}

/** Params are checked, with their defaults. What is thrown is told as `wireErrorOf` says. */
export type Handler<M extends MethodName> = (params: Params<M>, call: Call) => Promise<Result<M>>;

/** Methods that mean something on a socket alone have no handler: the socket answers them. */
export type HandledMethod = Exclude<MethodName, "sessions.subscribe" | "sessions.unsubscribe">;
export type HandlersOf<M extends HandledMethod> = { readonly [Name in M]: Handler<Name> };
export type Handlers = HandlersOf<HandledMethod>;

/** What lies beside the store of a folder. */
export interface FolderDeps {
  readonly store: Store;
  readonly files: FileBoundary;
  readonly config: Config;
  /** With where each value comes from. */
  readonly loaded: LoadedConfig;
  /** Reloads the whole configuration, new commands included; left out: no gateway runs here. */
  readonly reload?: () => Promise<Result<"config.reload">>;
  /** For which agent `main`, short keys and labels are read where a call names none. */
  readonly defaultAgentId: string;
  readonly clock: Clock;
  readonly newId: IdSource;
  /** Only an admin is told of paths. */
  readonly root: string | null;
  /** Whose sessions there are; `null` is the unnamed user. */
  users(): readonly (string | null)[];
  /** Lists over every user; `null`: the store has none. */
  readonly everyUser: EveryUser | null;
  /** The working sets of these as paths, by uid; one that was removed a moment ago has none. */
  transcriptPaths(sessions: readonly SessionRecord[]): ReadonlyMap<string, string>;
  /** Everything that was ever said in a session, its damage too, read in slices, until nobody waits for it. */
  readTree(session: SessionRecord, signal?: AbortSignal): Promise<SessionTree>;
  /** The same text for as long as no list can have changed; `null`: it is not known. */
  changeMark(): Promise<string | null>;
  /** The same text for as long as no session has come, gone or got another name, and no run has moved; `null`: it is not known. */
  workMark(): string | null;
  /** The same text for as long as nobody has written to a session; `null`: it is not known. */
  logMark(session: Pick<SessionRecord, "uid">): string | null;
  /** Whether bytes of what was redacted or purged are still in a database, because another process is reading it. */
  isErasePending(): boolean;
  /** The session of a user that has a key now; `null`: none. Nothing of its log is read. */
  sessionAt(userId: string | null, key: string): Pick<SessionRecord, "uid" | "key" | "sessionId"> | null;
  /** What goes on in sessions. */
  readonly runs: Pick<RunStore, "work" | "countByUser"> | null;
  /** Accepted input that is not yet conversation. */
  pending(sessionUid: string): Promise<readonly Run[]>;
  /** The blobs that the entries of a session name. */
  blobs(session: SessionRecord, tree: SessionTree): Promise<(sha256: string) => Uint8Array | null>;
  readonly redactor: Redactor;
  /** The request of a session's model; `null`: its agent is not known here, or is an ACP agent. */
  showRequest(session: SessionRecord, options: ShowRequestOptions): Promise<ContextPayload | null>;
  /** What a model would be sent of a context whose agent is not known. */
  contextForModel(
    context: SessionContext,
    model: ModelRef,
    known: Omit<XrayOptions, "contextWindow" | "vision" | "overrides" | "tools"> & {
      readonly settings?: ModelSettings;
      readonly wire?: boolean;
    },
  ): Promise<ContextPayload>;
}

/** A folder whose sessions answer. */
export interface SkeinDeps extends FolderDeps {
  readonly skein: Skein;
}

/** With tokens, which a store that is not on a disk of its own has none of. */
export interface TokenDeps {
  readonly tokens: Tokens;
  readonly clock: Clock;
}
