import type { Clock } from "../../core/clock.ts";
import { systemClock } from "../../core/clock.ts";
import { SkeinError } from "../../core/errors.ts";
import type { Script, ScriptEngine } from "../../core/script.ts";
import { Unchanged } from "../../core/unchanged.ts";
import type { Ledger } from "../../runs/contract.ts";
import type { StoreWork } from "../../store/work.ts";
import { isNotWritten, PendingRevocations } from "./pending-revocations.ts";
import type { Principal, RequestedRights } from "./principal.ts";
import { everyUser, grantRights } from "./principal.ts";
import type { StoredToken } from "./token-scripts.ts";
import {
  countOtherTokens,
  countTokensByUser,
  deleteExpired,
  deleteToken,
  deleteUserTokens,
  findUnrevoked,
  insertToken,
  readAllTokens,
  readSimilarTokens,
  readToken,
  readTokens,
  requireToken,
  revokeTree,
  writeLastUse,
  writeRevocation,
} from "./token-scripts.ts";
import type { RandomSource, TokenRecord } from "./token-table.ts";
import {
  findByHash,
  hashSecret,
  isLive,
  isSecret,
  migrateTokens,
  newSecret,
  principalOf,
  systemRandom,
  tokenPrefix,
} from "./token-table.ts";

/** `lastUsedAt` is written at most this often. */
const usedEveryMs = 60_000;
const longestName = 100;
const mostKnown = 1000;

export interface TokensOptions {
  readonly clock?: Clock;
  readonly random?: RandomSource;
  /**
   * For a long-running process. A revocation that cannot be written still takes effect immediately, and
   * `saveRevocations` writes it later. By default, `revoke` throws instead.
   */
  readonly keepsRevocations?: boolean;
}

export interface TokenRequest extends RequestedRights {
  readonly name: string;
}

export interface NewToken {
  /** Cannot be retrieved later, because the database stores only its hash. */
  readonly secret: string;
  readonly token: TokenRecord;
}

/** The token that creates another one. `null` stands for a local process. */
export type TokenCreator = { readonly tokenId: string } | null;

/**
 * The tokens of a store, in the same database as its runs. A revocation takes effect immediately in every process
 * because cached rows are used only while the database reports no change.
 */
export class Tokens {
  /** The database if it is local, otherwise `null`. Its lock also protects files in the same folder. */
  readonly ledger: Ledger | null;
  readonly clock: Clock;
  readonly #engine: ScriptEngine;
  readonly #random: RandomSource;
  readonly #keepsRevocations: boolean;
  readonly #unsaved = new PendingRevocations();
  /** Rows by hash prefix. */
  readonly #alike: Unchanged<readonly StoredToken[]>;
  /** Rows by token ID. */
  readonly #known: Unchanged<TokenRecord>;

  constructor(
    { engine, ledger }: Pick<StoreWork, "engine" | "ledger">,
    { clock = systemClock, random = systemRandom, keepsRevocations = false }: TokensOptions = {},
  ) {
    this.ledger = ledger;
    this.clock = clock;
    this.#engine = engine;
    this.#random = random;
    this.#keepsRevocations = keepsRevocations;
    if (ledger !== null) migrateTokens(ledger);
    const mark = () => engine.mark();
    this.#alike = new Unchanged(mark, mostKnown);
    this.#known = new Unchanged(mark, mostKnown);
  }

  /** Runs a script in a transaction that excludes all other changes to tokens and link codes. */
  change<T>(script: () => Script<T>): Promise<T> {
    return this.#engine.change("synced", "gateway", script);
  }

  /** Creates a token on behalf of another token, or of a local process if `by` is `null`. */
  create(request: TokenRequest, by: TokenCreator): Promise<NewToken> {
    return this.change(() => this.createWithin(request, by));
  }

  /** Like `create`, but part of a transaction. */
  *createWithin(request: TokenRequest, by: TokenCreator): Script<NewToken> {
    const secret = newSecret(tokenPrefix, this.#random);
    return { secret, token: yield* this.adoptWithin(secret, request, by) };
  }

  /** Like `createWithin`, but for an existing secret. */
  *adoptWithin(secret: string, request: TokenRequest, by: TokenCreator): Script<TokenRecord> {
    const name = checkName(request.name);
    const now = this.clock.now();
    // Reads the creator's rights again because the creator might just have been revoked.
    const own = by === null ? null : yield* this.#requireCurrent(by.tokenId);
    const rights = grantRights(request, own, now);
    const tokenId = Buffer.from(this.#random(6)).toString("hex");
    const parent = by?.tokenId ?? null;
    yield* insertToken(hashSecret(secret), { tokenId, name, ...rights, parent, createdAt: now });
    return yield* requireToken(tokenId);
  }

  /** Returns the principal for a secret, or `null` if the secret is not valid. */
  async verify(secret: unknown): Promise<Principal | null> {
    const token = await this.find(secret);
    const now = this.clock.now();
    if (token === null || !isLive(token, now)) return null;
    await this.#noteUse(token, now);
    return principalOf(token);
  }

  /**
   * Finds the token with this secret, even if it has expired or been revoked. Does not update the time of its last use.
   */
  async find(secret: unknown): Promise<TokenRecord | null> {
    if (!isSecret(tokenPrefix, secret)) return null;
    const kept = hashSecret(secret);
    const read = () => this.#engine.read(() => readSimilarTokens(kept.beginning));
    const alike = await this.#alike.get(kept.beginning, read);
    return this.#asRevoked(findByHash(alike ?? [], kept)?.token ?? null);
  }

  /** Like `find`, but part of a transaction. */
  *findWithin(secret: string): Script<TokenRecord | null> {
    const kept = hashSecret(secret);
    return this.#asRevoked(findByHash((yield* readSimilarTokens(kept.beginning)) ?? [], kept)?.token ?? null);
  }

  /**
   * Like `verify`, but uses the last successful read, for times when the database cannot be read. That read might not
   * include revocations by other processes, so use the result only to decide who sees error details.
   */
  verifyLastRead(secret: unknown): Principal | null {
    if (!isSecret(tokenPrefix, secret)) return null;
    const kept = hashSecret(secret);
    return this.#livePrincipal(findByHash(this.#alike.lastRead(kept.beginning) ?? [], kept)?.token ?? null);
  }

  /** Returns the principal for an open connection's token, or `null` if the token was revoked or has expired. */
  async current(tokenId: string): Promise<Principal | null> {
    const read = () => this.#engine.read(() => readToken(tokenId));
    return this.#livePrincipal(await this.#known.get(tokenId, read));
  }

  /** Like `current`, but part of a transaction. */
  *currentWithin(tokenId: string): Script<Principal | null> {
    return this.#livePrincipal(yield* readToken(tokenId));
  }

  /** Returns the tokens for which `current` would return `null`, using a single read. */
  async findEnded(tokenIds: readonly string[]): Promise<ReadonlySet<string>> {
    const found = await this.#known.getEach(tokenIds, (ids) => this.#engine.read(() => readTokens(ids)));
    return new Set(tokenIds.filter((each) => this.#livePrincipal(found.get(each) ?? null) === null));
  }

  async get(tokenId: string): Promise<TokenRecord | null> {
    return this.#asRevoked(await this.#engine.read(() => readToken(tokenId)));
  }

  /** Returns all tokens in order of creation, including revoked and expired ones. */
  async list(): Promise<TokenRecord[]> {
    const tokens = await this.#engine.read(readAllTokens);
    return tokens.map((token) => this.#unsaved.applyTo(token));
  }

  /** Returns the number of other valid tokens. */
  countOthers(tokenId: string): Promise<number> {
    return this.#engine.read(() => countOtherTokens(tokenId, this.clock.now()));
  }

  /**
   * Returns users with valid tokens and their token counts, in byte order. Starts with the first user if `after` is
   * `undefined`.
   */
  countByUser(
    after: string | null | undefined,
    limit: number,
  ): Promise<{ readonly userId: string | null; readonly tokens: number }[]> {
    return this.#engine.read(() => countTokensByUser(after, limit, this.clock.now()));
  }

  /** Whether this process revoked the token and has not written the revocation to the database yet. */
  isUnsaved(tokenId: string): boolean {
    return this.#unsaved.has(tokenId);
  }

  /**
   * Revokes a token and all tokens created from it, at any depth, because a thief might have created more. Returns the
   * revoked IDs.
   */
  async revoke(tokenId: string): Promise<string[]> {
    const now = this.clock.now();
    try {
      const revoked = await this.change(() => revokeTree(tokenId, now));
      this.#forget(revoked);
      return revoked;
    } catch (error) {
      if (!this.#keepsRevocations || !isNotWritten(error)) throw error;
      return this.#unsaved.add(await this.#engine.read(() => findUnrevoked(tokenId)), now);
    }
  }

  /** Removes all tokens that belong to a removed user, because the rows contain the user ID. */
  async removeUser(userId: string): Promise<string[]> {
    if (userId === everyUser) return []; // Tokens for every user do not belong to a single user.
    const removed = await this.change(() => deleteUserTokens(userId));
    this.#forget(removed);
    return removed;
  }

  /** Writes pending revocations. Throws if they still cannot be written. */
  saveRevocations(): Promise<void> {
    return this.#unsaved.save(async (revocations) => {
      await this.change(function* () {
        for (const [tokenId, at] of revocations) yield* writeRevocation(tokenId, at);
      });
      this.#forget(revocations.map(([tokenId]) => tokenId));
    });
  }

  /**
   * Removes tokens that expired before this time. Revoked tokens without an expiry are kept so that they are not
   * mistaken for unknown tokens.
   */
  forgetExpired(before: number): Promise<number> {
    return this.change(() => deleteExpired(before));
  }

  /** Undoes `create` for a secret that has never been shown. */
  async drop(tokenId: string): Promise<void> {
    await this.change(() => deleteToken(tokenId));
    this.#forget([tokenId]);
  }

  #forget(tokenIds: readonly string[]): void {
    const ids = new Set(tokenIds);
    this.#alike.forget((alike) => alike.some(({ token }) => ids.has(token.tokenId)));
  }

  #asRevoked(token: TokenRecord | null): TokenRecord | null {
    return token === null ? null : this.#unsaved.applyTo(token);
  }

  #livePrincipal(found: TokenRecord | null): Principal | null {
    const token = this.#asRevoked(found);
    return token !== null && isLive(token, this.clock.now()) ? principalOf(token) : null;
  }

  *#requireCurrent(tokenId: string): Script<Principal> {
    const token = yield* this.currentWithin(tokenId);
    if (token !== null) return token;
    throw new SkeinError("unauthorized", {
      problem: "The token used to create the new token is no longer valid",
      advice: "Nothing was created. Use a valid token",
    });
  }

  /** Ignores write errors, because a full or busy disk must not lock users out. The next use tries again. */
  async #noteUse({ tokenId, lastUsedAt }: TokenRecord, now: number): Promise<void> {
    const before = now - usedEveryMs;
    if (lastUsedAt !== null && lastUsedAt > before) return;
    const written = this.#engine.change("unsynced", null, () => writeLastUse(tokenId, now, before));
    await written.catch(() => undefined);
  }
}

function checkName(name: string): string {
  if (name !== "" && name.length <= longestName && name.isWellFormed()) return name;
  throw new SkeinError("invalid_arguments", {
    problem: `A token needs a name of 1 to ${longestName} characters`,
    advice: "Describe what it is for",
  });
}
