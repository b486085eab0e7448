/**
 * Whether a name matches a pattern with `*` and `?`. The number of steps is at most the pattern's length times the
 * name's length, because the function backtracks only to the last `*`.
 */
export function matchesGlob(pattern: string, name: string): boolean {
  const wanted = [...pattern];
  const given = [...name];
  let at = 0;
  let place = 0;
  /** The last `*`, and the end of its match so far. */
  let star = -1;
  let reach = 0;
  while (place < given.length) {
    if (wanted[at] === "*") {
      star = at++;
      reach = place;
    } else if (at < wanted.length && (wanted[at] === "?" || wanted[at] === given[place])) {
      at++;
      place++;
    } else if (star === -1) {
      return false;
    } else {
      at = star + 1;
      place = ++reach;
    }
  }
  while (wanted[at] === "*") at++;
  return at === wanted.length;
}
