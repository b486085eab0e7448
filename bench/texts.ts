/** Texts that are the same on every run, made of English and Chinese words with a natural frequency distribution. */

const syllables =
  "ba ce di fo gu ha je ki lo mu na pe qui ro su ta ve wi xo ya zen tor mil ran dis con ter per".split(" ");
const common =
  "the of and to in is you that it for was on are as with they be at one have this from or had by not word but what some we can out other were all there when up use your how said an each she which do their time if will way about many then them write would like so these her long make thing see him two has look more day could go come did number sound no most people my over know water than call first who may down side been now find any new work part take get place made live where after back little only round man year came show every good me give our under name".split(
    " ",
  );
const characters = [
  ..."的一是不了在人有我他这中大来上国个到说们为子和你地出道也时年得就那要下以生会自着去之过家学对可她里后小么心多天而能好都然没日于起还发成事只作当想看文无开手十用主行方又如前所本见经头面公同三已老从动两长知民样现分将外但身些与高意进把法此实回二理美点月明其种声全工己话儿者向情部正名定女问力机给等几很业最间新什打便位因重被走电四第门相次东政海口使教西再平真听世气信北少关并内加化由却代军产入先山五太水万市眼体别处总才场师书比住员九笑性通目华报立马命张活难神数件安表原车白应路期叫死常提感金何更反合放做系计或司利受光王果亲界及今京务制解各任至清物台象记边共风战干接它许八特觉望直服毛林题建南度统色字请交爱让认算论百吃义科怎元社术结六功指思非流每青管夫连远资队跟带花快条院变联",
];

export type Random = () => number;

/** Numbers in [0, 1), determined by the seed. */
export function seeded(seed: number): Random {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** A few words make up most of the text. Frequencies follow Zipf's law. */
function rank(random: Random, size: number): number {
  return Math.min(size - 1, Math.floor(size ** random()) - 1);
}

/** Returns the word with this rank. Words after the common ones are composed of syllables. */
export function englishWord(place: number): string {
  const known = common[place];
  if (known !== undefined) return known;
  let rest = place;
  let word = "";
  do {
    word += syllables[rest % syllables.length];
    rest = Math.floor(rest / syllables.length);
  } while (rest > 0);
  return word;
}

export function chineseWord(place: number): string {
  const first = characters[place % characters.length] ?? "";
  const second =
    characters[(place * 7 + Math.floor(place / characters.length) + 3) % characters.length] ?? "";
  return first + second;
}

export const englishWords = 30_000;
export const chineseWords = 20_000;

export function english(random: Random, words: number): string {
  return Array.from({ length: words }, () => englishWord(rank(random, englishWords))).join(" ");
}

export function chinese(random: Random, words: number): string {
  return Array.from({ length: words }, (_, index) => {
    const word = chineseWord(rank(random, chineseWords));
    return index % 9 === 8 ? `${word}，` : word;
  }).join("");
}

/** Texts of people and agents. Half are English, a quarter Chinese, and a quarter both. */
export function mixed(random: Random, words: number): string {
  const kind = random();
  if (kind < 0.5) return english(random, words);
  if (kind < 0.75) return chinese(random, words);
  return `${english(random, words >> 1)} ${chinese(random, words >> 1)}`;
}

/** Returns English text with exactly this many characters, from a small stock that repeats. */
export function stockOfTexts(length: number, amount = 500, seed = 7): (index: number) => string {
  const random = seeded(seed);
  const stock = Array.from({ length: amount }, () => english(random, length / 3).slice(0, length));
  return (index) => stock[index % amount] ?? "";
}
