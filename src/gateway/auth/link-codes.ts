import type { Script } from "../../core/script.ts";
import { changeRows, queryRows } from "../../core/script.ts";
import type { Principal } from "./principal.ts";
import type { RandomSource, Row, SecretHash } from "./token-table.ts";
import { codePrefix, findByHash, hashSecret, isSecret, newSecret, systemRandom } from "./token-table.ts";
import type { NewToken, Tokens } from "./tokens.ts";

/**
 * Codes for console links, such as the link that `skein start` prints. A code can be exchanged once, within ten
 * minutes, in any process. The page that exchanges the code gets a new token, which can be revoked separately.
 */

const codeLivesMs = 10 * 60_000;
/** The maximum number of unused codes per token. If there are more, the oldest are dropped. */
const mostCodes = 20;
const consoleLivesMs = 30 * 24 * 3_600_000;

/** Creates a link code on behalf of `by`, whose token must still be valid when the code is exchanged. */
export async function createLinkCode(
  tokens: Tokens,
  by: Pick<Principal, "tokenId">,
  random: RandomSource = systemRandom,
): Promise<{ readonly code: string; readonly expiresAt: number }> {
  const code = newSecret(codePrefix, random);
  const { beginning, hash } = hashSecret(code);
  const now = tokens.clock.now();
  const expiresAt = now + codeLivesMs;
  await tokens.change(function* () {
    yield* changeRows("DELETE FROM gateway_codes WHERE expires_at <= ?", now);
    yield* changeRows(
      "INSERT INTO gateway_codes (beginning, hash, parent, expires_at) VALUES (?, ?, ?, ?)",
      beginning,
      hash,
      by.tokenId,
      expiresAt,
    );
    yield* changeRows(
      `DELETE FROM gateway_codes WHERE parent = ?1 AND seq NOT IN
         (SELECT seq FROM gateway_codes WHERE parent = ?1 ORDER BY seq DESC LIMIT ?2)`,
      by.tokenId,
      mostCodes,
    );
  });
  return { code, expiresAt };
}

/**
 * Returns a new console token, or `null` if the code is invalid, used or expired, or if the token that created it is no
 * longer valid.
 */
export async function exchangeLinkCode(tokens: Tokens, code: unknown): Promise<NewToken | null> {
  if (!isSecret(codePrefix, code)) return null;
  return tokens.change(() => exchangeWithin(tokens, hashSecret(code)));
}

function* exchangeWithin(tokens: Tokens, kept: SecretHash): Script<NewToken | null> {
  const sql = "SELECT seq, hash, parent, expires_at FROM gateway_codes WHERE beginning = ?";
  const row = findByHash((yield* queryRows(sql, kept.beginning)) as (Row & { hash: string })[], kept);
  if (row === null) return null;
  yield* changeRows("DELETE FROM gateway_codes WHERE seq = ?", Number(row.seq));
  const now = tokens.clock.now();
  const maker = yield* tokens.currentWithin(String(row.parent));
  if (now >= Number(row.expires_at) || maker === null) return null;
  const expiresAt = Math.min(now + consoleLivesMs, maker.expiresAt ?? Number.POSITIVE_INFINITY);
  const { scopes, user } = maker;
  return yield* tokens.createWithin({ name: "console", scopes, user, expiresAt }, maker);
}
