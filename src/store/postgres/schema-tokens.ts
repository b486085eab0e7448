/**
 * The token tables. They have the same columns as in `work.db`, so that both run the same scripts. Tokens belong to the
 * deployment and not to a user, so there is no row-level security. Only the role that works for all users has access.
 */

const tokens = `
CREATE TABLE skein.gateway_tokens (
  seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  token_id text COLLATE "C" NOT NULL UNIQUE,
  beginning text COLLATE "C" NOT NULL,
  hash text COLLATE "C" NOT NULL UNIQUE,
  name text COLLATE "C" NOT NULL,
  scopes text COLLATE "C" NOT NULL,
  "user" text COLLATE "C",
  parent text COLLATE "C",
  created_at bigint NOT NULL,
  expires_at bigint,
  last_used_at bigint,
  revoked_at bigint
);
CREATE INDEX gateway_tokens_beginning ON skein.gateway_tokens (beginning);
CREATE INDEX gateway_tokens_parent ON skein.gateway_tokens (parent) WHERE parent IS NOT NULL;
CREATE INDEX gateway_tokens_user ON skein.gateway_tokens ("user");
`;

const codes = `
CREATE TABLE skein.gateway_codes (
  seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  beginning text COLLATE "C" NOT NULL,
  hash text COLLATE "C" NOT NULL UNIQUE,
  parent text COLLATE "C",
  expires_at bigint NOT NULL
);
CREATE INDEX gateway_codes_beginning ON skein.gateway_codes (beginning);
`;

export const tokenTables: readonly string[] = ["gateway_tokens", "gateway_codes"];

export function createTokenTables(): string {
  return `${tokens}${codes}`;
}
