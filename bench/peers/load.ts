/**
 * Loads a package listed in `bench/package.json`. Its types are not needed, because each peer declares what it uses.
 */
export async function load<T>(name: string): Promise<T> {
  return (await import(name)) as T;
}
