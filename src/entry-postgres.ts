import "./check-node.ts";

export type { Backend } from "./store/contract.ts";
export { openPostgres, type PostgresOptions } from "./store/postgres/open-postgres.ts";
export type { S3Options } from "./store/postgres/s3-client.ts";
