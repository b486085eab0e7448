/**
 * The English stemmer of the Snowball project (Porter2), so that "signed" finds "signing". A stem is not always a word.
 * Accepts lowercase words that consist of the letters a to z.
 */

const vowel = /[aeiouy]/;
const shortEnd = /(?:^[aeiouy][^aeiouy]|[^aeiouy][aeiouy][^aeiouywxY])$/;
const doubleEnd = /(?:bb|dd|ff|gg|mm|nn|pp|rr|tt)$/;

/** Words that the rules would stem wrongly. */
const special = new Map(
  Object.entries({
    ...{ skis: "ski", skies: "sky", dying: "die", lying: "lie", tying: "tie", idly: "idl", gently: "gentl" },
    ...{ ugly: "ugli", early: "earli", only: "onli", singly: "singl", sky: "sky", news: "news" },
    ...{ howe: "howe", atlas: "atlas", cosmos: "cosmos", bias: "bias", andes: "andes" },
  }),
);
const finished = new Set("inning outing canning herring earring proceed exceed succeed".split(" "));

/** Endings and their replacements, longest first, so that the first match is the longest. */
type Endings = readonly (readonly [ending: string, by: string])[];

const pairs = (text: string): Endings =>
  text
    .split(" ")
    .map((pair) => pair.split(":"))
    .map(([ending = "", by = ""]) => [ending, by] as const)
    .toSorted(([one], [other]) => other.length - one.length);

const secondStep = pairs(
  "tional:tion enci:ence anci:ance abli:able entli:ent izer:ize ization:ize ational:ate ation:ate ator:ate " +
    "alism:al aliti:al alli:al fulness:ful ousli:ous ousness:ous iveness:ive iviti:ive biliti:ble bli:ble " +
    "ogi:og fulli:ful lessli:less li:li",
);
const thirdStep = pairs("tional:tion ational:ate alize:al icate:ic iciti:ic ical:ic ful: ness: ative:ative");
const fourthStep = pairs(
  "al: ance: ence: er: ic: able: ible: ant: ement: ment: ent: ism: ate: iti: ous: ive: ize: ion:ion",
);

export function stemWord(word: string): string {
  if (word.length <= 2) return word;
  const known = special.get(word);
  if (known !== undefined) return known;
  const marked = word.replace(/^y|(?<=[aeiouy])y/g, "Y");
  const first = firstRegion(marked);
  const second = regionAfter(marked, first);
  const plural = dropPlural(marked);
  if (finished.has(plural)) return plural;
  let stem = dropVerbEnding(plural, first);
  if (/[^aeiouy]y$/i.test(stem) && stem.length > 2) stem = `${stem.slice(0, -1)}i`;
  stem = replaceEnding(stem, secondStep, first, isSecondAllowed);
  stem = replaceEnding(
    stem,
    thirdStep,
    first,
    (_, ending, at) => ending !== "ative" || at >= second,
    "ative",
  );
  stem = replaceEnding(
    stem,
    fourthStep,
    second,
    (before, ending) => ending !== "ion" || /[st]$/.test(before),
    "ion",
  );
  return dropLastLetter(stem, first, second).toLowerCase();
}

/** Returns where the first region starts: after the first consonant that follows a vowel. */
function firstRegion(word: string): number {
  const [prefix] = /^(?:gener|commun|arsen)/.exec(word) ?? [];
  return prefix === undefined ? regionAfter(word, 0) : prefix.length;
}

function regionAfter(word: string, from: number): number {
  const found = /[aeiouy][^aeiouy]/.exec(word.slice(from));
  return found === null ? word.length : from + found.index + 2;
}

function dropPlural(word: string): string {
  if (word.endsWith("sses")) return word.slice(0, -2);
  if (/ie[ds]$/.test(word)) return word.slice(0, word.length > 4 ? -2 : -1);
  if (/(?:us|ss)$/.test(word) || !word.endsWith("s")) return word;
  return vowel.test(word.slice(0, -2)) ? word.slice(0, -1) : word;
}

function dropVerbEnding(word: string, first: number): string {
  const [eed] = /eed(?:ly)?$/.exec(word) ?? [];
  if (eed !== undefined) return word.length - eed.length >= first ? `${word.slice(0, -eed.length)}ee` : word;
  const [ending] = /(?:ed|ing)(?:ly)?$/.exec(word) ?? [];
  if (ending === undefined) return word;
  const stem = word.slice(0, -ending.length);
  if (!vowel.test(stem)) return word;
  if (/(?:at|bl|iz)$/.test(stem)) return `${stem}e`;
  if (doubleEnd.test(stem)) return stem.slice(0, -1);
  return stem.length <= first && shortEnd.test(stem) ? `${stem}e` : stem;
}

function isSecondAllowed(before: string, ending: string): boolean {
  if (ending === "ogi") return before.endsWith("l");
  return ending !== "li" || /[cdeghkmnrt]$/.test(before);
}

/** Replaces the longest ending that is in the region and allowed. `dropped` is deleted instead. */
function replaceEnding(
  word: string,
  endings: Endings,
  region: number,
  isAllowed: (before: string, ending: string, at: number) => boolean,
  dropped = "li",
): string {
  for (const [ending, by] of endings) {
    if (!word.endsWith(ending)) continue;
    const at = word.length - ending.length;
    const before = word.slice(0, at);
    if (at < region || !isAllowed(before, ending, at)) return word;
    return ending === dropped ? before : before + by;
  }
  return word;
}

function dropLastLetter(word: string, first: number, second: number): string {
  const at = word.length - 1;
  if (word.endsWith("ll") && at >= second) return word.slice(0, -1);
  if (!word.endsWith("e")) return word;
  const isShort = shortEnd.test(word.slice(0, -1));
  return at >= second || (at >= first && !isShort) ? word.slice(0, -1) : word;
}
