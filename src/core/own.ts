/** What a table itself has under a name. Names come from outside: "constructor" is one like any other. */
export function own<T>(table: { readonly [name: string]: T }, name: string): T | undefined {
  return Object.hasOwn(table, name) ? table[name] : undefined;
}
