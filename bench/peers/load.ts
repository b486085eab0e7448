/** A package of `bench/package.json`. Its types are not ours to need: each peer says what it uses of it. */
export async function load<T>(name: string): Promise<T> {
  return (await import(name)) as T;
}
