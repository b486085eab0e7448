/** Does something for each item, so many at a time; the results in the order of the items. */
export async function inTurns<Item, Result>(
  items: readonly Item[],
  atATime: number,
  act: (item: Item) => Promise<Result>,
): Promise<Result[]> {
  const results: Result[] = [];
  const waiting = items.entries();
  const work = async () => {
    // One iterator for all of them: whoever is free takes the next.
    for (const [index, item] of waiting) results[index] = await act(item);
  };
  await Promise.all(Array.from({ length: Math.min(atATime, items.length) }, work));
  return results;
}
