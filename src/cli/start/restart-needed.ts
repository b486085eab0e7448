import type { Config } from "../../config/sections/all.ts";

/** Settings that a running gateway cannot change, by their paths: where it listens, and on which folder. */
export function restartNeeded(before: Config, after: Config): readonly string[] {
  const store = before.store.path === after.store.path ? [] : ["store"];
  const names = Object.keys(before.gateway) as (keyof Config["gateway"])[];
  const changed = names.filter(
    (name) => JSON.stringify(before.gateway[name]) !== JSON.stringify(after.gateway[name]),
  );
  return [...store, ...changed.map((name) => `gateway.${name}`)];
}
