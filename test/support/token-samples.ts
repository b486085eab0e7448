import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/** Texts for counting tokens: `test/golden/tokens/<kind>-<number>.txt`. */
export interface TokenSample {
  readonly kind: string;
  readonly name: string;
  readonly text: string;
}

const folder = fileURLToPath(new URL("../golden/tokens/", import.meta.url));

export function tokenSamples(): TokenSample[] {
  return readdirSync(folder)
    .toSorted()
    .map((file) => {
      const name = file.replace(/\.txt$/, "");
      return { kind: name.replace(/-\d+$/, ""), name, text: readFileSync(join(folder, file), "utf8") };
    });
}
