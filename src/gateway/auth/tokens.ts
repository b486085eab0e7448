import type { Clock } from "../../core/clock.ts";
import { systemClock } from "../../core/clock.ts";
import { SkeinError } from "../../core/errors.ts";
import { Unchanged } from "../../core/unchanged.ts";
import type { Ledger } from "../../runs/contract.ts";
import type { Principal, RequestedRights } from "./principal.ts";
import { everyUser, grantRights } from "./principal.ts";
import type { RandomSource, Row, TokenRecord } from "./token-table.ts";
import {
  findByHash,
  hashSecret,
  isLive,
  isSecret,
  migrateTokens,
  newSecret,
  principalOf,
  recordOf,
  systemRandom,
  tokenColumns,
  tokenPrefix,
} from "./token-table.ts";

/** The resolution of `lastUsedAt`, which limits the number of writes. */
const usedEveryMs = 60_000;
const longestName = 100;
const mostKnown = 1000;

export interface TokensOptions {
  readonly ledger: Ledger;
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
  /** Available only now, because the database stores only its hash. */
  readonly secret: string;
  readonly token: TokenRecord;
}

interface StoredToken {
  readonly hash: string;
  readonly token: TokenRecord;
}

/**
 * The tokens of a root folder, stored in `work.db`. A revocation takes effect immediately in every process because
 * cached rows are used only while the database reports no change.
 */
export class Tokens {
  readonly ledger: Ledger;
  readonly clock: Clock;
  readonly #random: RandomSource;
  readonly #keepsRevocations: boolean;
  /** Revocations that are not on disk yet, each with its time. */
  readonly #unsaved = new Map<string, number>();
  /** Rows by hash prefix, and rows by ID. */
  readonly #alike: Unchanged<readonly StoredToken[]>;
  readonly #known: Unchanged<TokenRecord>;

  constructor({
    ledger,
    clock = systemClock,
    random = systemRandom,
    keepsRevocations = false,
  }: TokensOptions) {
    this.ledger = ledger;
    this.#keepsRevocations = keepsRevocations;
    this.clock = clock;
    this.#random = random;
    migrateTokens(ledger);
    const mark = () => ledger.changeMark();
    this.#alike = new Unchanged(mark, mostKnown);
    this.#known = new Unchanged(mark, mostKnown);
  }

  /** Creates a token on behalf of another token, or of a local process if `by` is `null`. */
  create(request: TokenRequest, by: { readonly tokenId: string } | null): NewToken {
    const secret = newSecret(tokenPrefix, this.#random);
    return { secret, token: this.adopt(secret, request, by) };
  }

  /** Like `create`, but for an existing secret. */
  adopt(secret: string, request: TokenRequest, by: { readonly tokenId: string } | null): TokenRecord {
    const name = checkName(request.name);
    const { beginning, hash } = hashSecret(secret);
    return this.ledger.exclusively(() => {
      const now = this.clock.now();
      // Reads the creator's rights again because the creator might just have been revoked.
      const own = by === null ? null : this.#maker(by.tokenId);
      const { scopes, user, expiresAt } = grantRights(request, own, now);
      const tokenId = Buffer.from(this.#random(6)).toString("hex");
      this.ledger.run(
        `INSERT INTO gateway_tokens (token_id, beginning, hash, name, scopes, user, parent, created_at, expires_at)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
        tokenId,
        beginning,
        hash,
        name,
        scopes.join(" "),
        user,
        by?.tokenId ?? null,
        now,
        expiresAt,
      );
      return this.#there(tokenId);
    });
  }

  /** Returns the principal for a secret, or `null` if the secret is not valid. */
  verify(secret: unknown): Principal | null {
    const token = this.find(secret);
    const now = this.clock.now();
    if (token === null || !isLive(token, now)) return null;
    this.#noteUse(token, now);
    return principalOf(token);
  }

  /**
   * Finds the token with this secret, even if it has expired or been revoked. Does not update the time of its last use.
   */
  find(secret: unknown): TokenRecord | null {
    if (!isSecret(tokenPrefix, secret)) return null;
    const kept = hashSecret(secret);
    const alike = this.#alike.get(kept.beginning, () => this.#beginningWith(kept.beginning)) ?? [];
    const token = findByHash(alike, kept)?.token ?? null;
    return token === null ? null : this.#asRevoked(token);
  }

  /**
   * Like `verify`, but falls back to the last successful read while `work.db` cannot be read. That read might not
   * include revocations by other processes, so the result only determines who sees error details.
   */
  verifyLastRead(secret: unknown): Principal | null {
    if (!isSecret(tokenPrefix, secret)) return null;
    const kept = hashSecret(secret);
    const token = findByHash(this.#alike.lastRead(kept.beginning) ?? [], kept)?.token ?? null;
    const isValid = token !== null && isLive(this.#asRevoked(token), this.clock.now());
    return isValid ? principalOf(token) : null;
  }

  /** Returns the principal for an open connection's token, or `null` if the token was revoked or has expired. */
  current(tokenId: string): Principal | null {
    const token = this.#known.get(tokenId, () => this.get(tokenId));
    if (token === null || this.#unsaved.has(tokenId)) return null;
    return isLive(token, this.clock.now()) ? principalOf(token) : null;
  }

  get(tokenId: string): TokenRecord | null {
    const row = this.ledger.sql(`SELECT ${tokenColumns} FROM gateway_tokens WHERE token_id = ?`).get(tokenId);
    return row === undefined ? null : this.#asRevoked(recordOf(row));
  }

  /** Returns all tokens in order of creation, including revoked and expired ones. */
  list(): TokenRecord[] {
    const rows = this.ledger.sql(`SELECT ${tokenColumns} FROM gateway_tokens ORDER BY seq`).all();
    return rows.map((row) => this.#asRevoked(recordOf(row)));
  }

  /** Returns the number of other valid tokens. */
  countOthers(tokenId: string): number {
    const sql = `SELECT count(*) AS count FROM gateway_tokens
      WHERE token_id <> ? AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > ?)`;
    return Number(this.ledger.sql(sql).get(tokenId, this.clock.now())?.count);
  }

  /**
   * Returns users with valid tokens and their token counts, in byte order. Starts with the first user if `after` is
   * `undefined`.
   */
  countByUser(
    after: string | null | undefined,
    limit: number,
  ): { readonly userId: string | null; readonly tokens: number }[] {
    const from = after === undefined ? "" : "AND coalesce(user, '') > ?";
    const sql = `SELECT coalesce(user, '') AS name, count(*) AS tokens FROM gateway_tokens
      WHERE user IS NOT ? AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > ?) ${from}
      GROUP BY name ORDER BY name LIMIT ?`;
    return this.ledger
      .sql(sql)
      .all(everyUser, this.clock.now(), ...(after === undefined ? [] : [after ?? ""]), limit)
      .map(({ name, tokens }) => ({ userId: name === "" ? null : String(name), tokens: Number(tokens) }));
  }

  /** Whether this process revoked the token and has not written the revocation to disk yet. */
  isUnsaved(tokenId: string): boolean {
    return this.#unsaved.has(tokenId);
  }

  /**
   * Revokes a token and all tokens created from it, at any depth, because a thief might have created more. Returns the
   * revoked IDs.
   */
  revoke(tokenId: string): string[] {
    return this.#end(() => {
      this.#there(tokenId);
      return this.ledger
        .sql(
          `WITH RECURSIVE minted (id) AS (
             VALUES (?) UNION SELECT token_id FROM gateway_tokens JOIN minted ON parent = id)
           SELECT token_id FROM gateway_tokens JOIN minted ON token_id = id WHERE revoked_at IS NULL ORDER BY seq`,
        )
        .all(tokenId);
    });
  }

  /** Removes all tokens that belong to a removed user, because the rows contain the user ID. */
  removeUser(userId: string): string[] {
    if (userId === everyUser) return []; // Tokens for every user do not belong to a single user.
    return this.ledger.exclusively(() => {
      const rows = this.ledger
        .sql("SELECT token_id FROM gateway_tokens WHERE user = ? ORDER BY seq")
        .all(userId);
      const ids = rows.map((row) => String(row.token_id));
      for (const id of ids) {
        this.ledger.run("DELETE FROM gateway_codes WHERE parent = ?", id);
        this.drop(id);
      }
      return ids;
    });
  }

  /** Writes pending revocations. Throws if they still cannot be written. */
  saveRevocations(): void {
    if (this.#unsaved.size === 0) return;
    const unsaved = [...this.#unsaved];
    this.ledger.exclusively(() => {
      for (const [tokenId, at] of unsaved) this.#writeEnd(tokenId, at);
    });
    for (const [tokenId] of unsaved) this.#unsaved.delete(tokenId);
  }

  /**
   * Removes tokens that expired before this time. Revoked tokens without an expiry are kept so that they are not
   * mistaken for unknown tokens.
   */
  forgetExpired(before: number): number {
    return Number(this.ledger.run("DELETE FROM gateway_tokens WHERE expires_at < ?", before).changes);
  }

  /** Undoes `create` for a secret that has never been shown. */
  drop(tokenId: string): void {
    this.ledger.run("DELETE FROM gateway_tokens WHERE token_id = ?", tokenId);
    this.#forget(tokenId);
  }

  /** Returns `null` if there is no such token. */
  #beginningWith(beginning: string): StoredToken[] | null {
    const rows = this.ledger
      .sql(`SELECT ${tokenColumns} FROM gateway_tokens WHERE beginning = ?`)
      .all(beginning);
    return rows.length === 0 ? null : rows.map((row) => ({ hash: String(row.hash), token: recordOf(row) }));
  }

  /** Revokes the rows that `find` returns, all in one transaction, so that no token can be created in between. */
  #end(find: () => readonly Row[]): string[] {
    const now = this.clock.now();
    const idsOf = (rows: readonly Row[]) => rows.map((row) => String(row.token_id));
    try {
      return this.ledger.exclusively(() => {
        const ids = idsOf(find());
        for (const id of ids) this.#writeEnd(id, now);
        return ids;
      });
    } catch (error) {
      if (!this.#keepsRevocations || !isNotWritten(error)) throw error;
      const ids = idsOf(find()).filter((id) => !this.#unsaved.has(id));
      for (const id of ids) this.#unsaved.set(id, now);
      return ids;
    }
  }

  #writeEnd(tokenId: string, at: number): void {
    const sql = "UPDATE gateway_tokens SET revoked_at = ? WHERE token_id = ? AND revoked_at IS NULL";
    this.ledger.run(sql, at, tokenId);
    this.#forget(tokenId);
  }

  #forget(tokenId: string): void {
    this.#alike.forget((alike) => alike.some(({ token }) => token.tokenId === tokenId));
  }

  #asRevoked(token: TokenRecord): TokenRecord {
    const revokedAt = this.#unsaved.get(token.tokenId);
    return revokedAt === undefined ? token : { ...token, revokedAt };
  }

  #maker(tokenId: string): Principal {
    const token = this.current(tokenId);
    if (token !== null) return token;
    const advice = "Nothing was created. Use a valid token";
    throw new SkeinError("unauthorized", {
      problem: "The token that would create the new token is no longer valid",
      advice,
    });
  }

  #there(tokenId: string): TokenRecord {
    const token = this.get(tokenId);
    if (token !== null) return token;
    const advice = "List the tokens to see their IDs";
    throw new SkeinError("not_found", { what: "Token", name: tokenId, advice });
  }

  /** Returns `false` if nothing was written. A full or busy disk must not lock users out. */
  #noteUse({ tokenId, lastUsedAt }: TokenRecord, now: number): boolean {
    if (lastUsedAt !== null && now - lastUsedAt < usedEveryMs) return false;
    try {
      this.ledger.unsynced(() =>
        this.ledger.run("UPDATE gateway_tokens SET last_used_at = ? WHERE token_id = ?", now, tokenId),
      );
      return true;
    } catch {
      return false; // The next use writes it again.
    }
  }
}

/** Whether the disk or the database failed, as opposed to the arguments being invalid. */
function isNotWritten(error: unknown): boolean {
  return error instanceof SkeinError && (error.code === "write_failed" || error.code === "store_damaged");
}

function checkName(name: string): string {
  if (name !== "" && name.length <= longestName && name.isWellFormed()) return name;
  throw new SkeinError("invalid_arguments", {
    problem: `A token needs a name of 1 to ${longestName} characters`,
    advice: "Describe what it is for",
  });
}
