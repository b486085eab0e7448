/**
 * Whether a name fits a pattern in which `*` stands for any characters and `?` for one. Never more steps than the length
 * of the pattern times that of the name: a `*` that was passed is never gone back to behind a later one.
 */
export function matchesGlob(pattern: string, name: string): boolean {
  const wanted = [...pattern];
  const given = [...name];
  let at = 0;
  let place = 0;
  /** The last `*`, and how far it reaches as far as we know. */
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
