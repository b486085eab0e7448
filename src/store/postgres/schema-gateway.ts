/**
 * The tables of the gateways. Tables that `work.db` also has have the same columns there, so that the same scripts run
 * on both databases. The tables belong to the deployment and not to a user, so they have no row-level security. Only
 * the role that works for all users has access.
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

const facts = `
CREATE TABLE skein.facts (name text COLLATE "C" PRIMARY KEY, value text NOT NULL);
`;

/**
 * Events in transit between processes. Their rows are kept for minutes. The tables are unlogged because a process that
 * notices missing numbers reads the state that the events describe.
 */
const feed = `
CREATE UNLOGGED TABLE skein.feed_publishers (
  publisher text COLLATE "C" PRIMARY KEY, number bigint NOT NULL, beat_at timestamptz NOT NULL,
  left_at timestamptz, process text
);
CREATE UNLOGGED TABLE skein.feed (
  publisher text COLLATE "C" NOT NULL, number bigint NOT NULL, id bigint GENERATED ALWAYS AS IDENTITY,
  at timestamptz NOT NULL DEFAULT clock_timestamp(), events text NOT NULL, PRIMARY KEY (publisher, number)
);
CREATE INDEX feed_at ON skein.feed (at);
`;

/** The tables that scripts use. */
export const scriptedGatewayTables: readonly string[] = ["gateway_tokens", "gateway_codes", "facts"];
export const gatewayTables: readonly string[] = [...scriptedGatewayTables, "feed_publishers", "feed"];

export function createGatewayTables(): string {
  return [tokens, codes, facts, feed].join("");
}
