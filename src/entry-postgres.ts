import "./check-node.ts";

export type { Backend } from "./store/contract.ts";
export { openPostgres, type PostgresOptions } from "./store/postgres/open-postgres.ts";
