import { parseSessionId } from "../../core/names.ts";
import type { Script } from "../../core/script.ts";
import type { SessionRef } from "../../core/session-ref.ts";
import { sessionRefOf } from "../../core/session-ref.ts";
import { Slices } from "../../core/slices.ts";
import { SessionTree } from "../../core/tree.ts";
import type { AfterCommit } from "../../runs/contract.ts";
import type { ListedSession, Scope, SessionInit, SessionRecord } from "../contract.ts";
import { keyInScope } from "../rules.ts";
import { blobsOf, copyTree } from "../session-trees.ts";
import { doNothing } from "../work.ts";
import type { BlobBytes } from "./blobs.ts";
import type { Sql } from "./database.ts";
import { driveScript } from "./drive-script.ts";
import { readWholeTree } from "./entry-rows.ts";
import type { SessionAccess } from "./session-access.ts";
import type { SessionRow } from "./session-row.ts";

/** Creates sessions that are empty, forked from another one, or adopted from a tree. */
export class SessionCreator {
  readonly #access: SessionAccess;
  readonly #blobs: BlobBytes;

  constructor(access: SessionAccess, blobs: BlobBytes) {
    this.#access = access;
    this.#blobs = blobs;
  }

  emptyTree(init: SessionInit): SessionTree {
    return SessionTree.create({ cwd: init.cwd, ...idOf(init) }, this.#access.treeOptions);
  }

  /** `act` runs in the transaction that creates the session. The function it returns is called after the commit. */
  create(
    scope: Scope,
    init: SessionInit,
    act?: (session: SessionRef) => Script<AfterCommit>,
  ): Promise<SessionRecord> {
    return this.#create(scope, init, async () => this.emptyTree(init), act);
  }

  async fork(
    scope: Scope,
    sessionId: string,
    entryId: string | null,
    init: SessionInit,
  ): Promise<SessionRecord> {
    const target = keyInScope(scope, init.key).agentId;
    const grow = (sql: Sql) => this.#forkTree(sql, scope, sessionId, entryId, init);
    // Blobs are copied before the fork refers to them. They are not copied inside its transaction, because copying
    // needs another connection.
    if (scope.agentId !== target) {
      const { from, tree } = await this.#access.parts.database.transact(scope.userId ?? null, grow);
      const hashes = [...new Set([...tree.entries()].flatMap(blobsOf))];
      if (from.agentId !== target) await this.#blobs.copy(from, target, hashes);
    }
    return this.#create(scope, init, async (sql) => (await grow(sql)).tree);
  }

  async adopt(scope: Scope, init: SessionInit, tree: SessionTree): Promise<SessionRecord> {
    const id = init.sessionId === undefined ? this.#access.parts.newId() : parseSessionId(init.sessionId);
    const copying = copyTree(tree, { id, cwd: init.cwd }, this.#access.treeOptions);
    const copy = await new Slices().run(copying);
    return this.#create(scope, init, async () => copy);
  }

  /** The source cannot be redacted until the fork is stored, so that the redaction finds the fork. */
  async #forkTree(
    sql: Sql,
    scope: Scope,
    sessionId: string,
    entryId: string | null,
    init: SessionInit,
  ): Promise<{ readonly from: ListedSession; readonly tree: SessionTree }> {
    const row = await this.#access.require(sql, scope, sessionId, "copy");
    const source = await readWholeTree(sql, row, this.#access.treeOptions);
    if (entryId !== null) source.path(entryId);
    const forking = source.forking(entryId, { cwd: init.cwd, ...idOf(init) });
    return { from: row.session, tree: await new Slices().run(forking) };
  }

  /** If the reply to the commit is lost, the repeated transaction finds the session by its uid. */
  async #create(
    scope: Scope,
    init: SessionInit,
    grow: (sql: Sql) => Promise<SessionTree>,
    act?: (session: SessionRef) => Script<AfterCommit>,
  ): Promise<SessionRecord> {
    const uid = this.#access.parts.newId();
    let inserted: SessionRow | null = null;
    let afterCommit = doNothing;
    const script = async (sql: Sql): Promise<SessionRow> => {
      const find = "SELECT FROM skein.sessions WHERE uid = $1";
      if (inserted !== null && (await sql(find, [uid])).length > 0) return inserted;
      inserted = await this.#access.insert(sql, scope, init, uid, await grow(sql));
      if (act !== undefined) afterCommit = await driveScript(sql, act(sessionRefOf(inserted.session)));
      return inserted;
    };
    const { database } = this.#access.parts;
    const row = await database.transact(scope.userId ?? null, script, {
      isRepeatable: true,
      ...(act === undefined ? {} : { locks: "runs" }),
    });
    const session = this.#access.publishCreated(row);
    afterCommit();
    return session;
  }
}

function idOf({ sessionId }: SessionInit): { readonly id?: string } {
  return sessionId === undefined ? {} : { id: sessionId };
}
