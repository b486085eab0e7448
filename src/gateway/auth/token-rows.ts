import type { Principal, TokenScope } from "./principal.ts";

/** A token as lists show it: everything but the secret. */
export interface TokenRecord extends Principal {
  /** The token that minted it; `null`: made by who has the folder. */
  readonly parent: string | null;
  readonly createdAt: number;
  /** To the minute. */
  readonly lastUsedAt: number | null;
  readonly revokedAt: number | null;
}

export type Row = Readonly<Record<string, unknown>>;

export const tokenColumns =
  "token_id, hash, name, scopes, user, parent, created_at, expires_at, last_used_at, revoked_at";

export function recordOf(row: Row): TokenRecord {
  return {
    tokenId: String(row.token_id),
    name: String(row.name),
    scopes: String(row.scopes).split(" ") as TokenScope[],
    user: textOf(row.user),
    parent: textOf(row.parent),
    createdAt: Number(row.created_at),
    expiresAt: timeOf(row.expires_at),
    lastUsedAt: timeOf(row.last_used_at),
    revokedAt: timeOf(row.revoked_at),
  };
}

/** Whether a token still counts. */
export function isLive({ expiresAt, revokedAt }: TokenRecord, now: number): boolean {
  return revokedAt === null && (expiresAt === null || now < expiresAt);
}

/** What of a token its calls are decided by. */
export function principalOf({ tokenId, name, scopes, user, expiresAt }: TokenRecord): Principal {
  return { tokenId, name, scopes, user, expiresAt };
}

function textOf(value: unknown): string | null {
  return value === null || value === undefined ? null : String(value);
}

function timeOf(value: unknown): number | null {
  return value === null || value === undefined ? null : Number(value);
}
