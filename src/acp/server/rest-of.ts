/**
 * What of a text is not yet shown, where its beginning was. Spaces aside: blocks of an answer are joined in another way than
 * they are streamed. `null`: what was shown is no beginning of it.
 */
export function restOf(whole: string, shown: string): string | null {
  let at = 0;
  for (const each of shown) {
    if (/\s/.test(each)) continue;
    while (at < whole.length && /\s/.test(whole[at] as string)) at += 1;
    if (!whole.startsWith(each, at)) return null;
    at += each.length;
  }
  const rest = whole.slice(at);
  return rest.trim() === "" ? "" : /\s$/.test(shown) ? rest.trimStart() : rest;
}
