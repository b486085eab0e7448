/** Sets of ASCII characters that tokens are made of, as bits of one table. */
const sets = {
  digit: "0-9",
  hex: "0-9a-f",
  upper: "A-Z0-9",
  alnum: "A-Za-z0-9",
  word: "A-Za-z0-9_",
  url: "A-Za-z0-9_\\-",
  dotted: "A-Za-z0-9_\\-.",
  base64: "A-Za-z0-9+/=",
  bearer: "A-Za-z0-9._~+/=\\-",
  path: "A-Za-z0-9_\\-/@.",
  key: "A-Za-z0-9_.\\-",
} as const;

export type CharacterSet = keyof typeof sets;

const names = Object.keys(sets) as CharacterSet[];
const table = new Uint16Array(128);
for (const [place, name] of names.entries()) {
  const pattern = new RegExp(`[${sets[name]}]`);
  for (let code = 0; code < 128; code++)
    if (pattern.test(String.fromCharCode(code))) table[code] = (table[code] ?? 0) | (1 << place);
}

/** The place of a set in the table. */
export function placeOf(set: CharacterSet): number {
  return names.indexOf(set);
}

/** The bit of a set, for `isIn`. */
export function bitOf(set: CharacterSet): number {
  return 1 << placeOf(set);
}

export const setCount = names.length;

export function isIn(bit: number, code: number): boolean {
  return code < 128 && ((table[code] ?? 0) & bit) !== 0;
}

const alnum = bitOf("alnum");

/** Whether a token may begin behind this character. */
export function isEdge(code: number): boolean {
  return !isIn(alnum, code);
}
