import { lintSource } from "@secretlint/core";
import { creator } from "@secretlint/secretlint-rule-preset-recommend";

/** What secretlint's recommended preset finds in a text: the stretches that it calls secrets. */
export async function secretlintFinds(text: string): Promise<string[]> {
  const { messages } = await lintSource({
    source: { filePath: "/corpus.txt", content: text, contentType: "text", ext: ".txt" },
    options: {
      config: { rules: [{ id: "@secretlint/secretlint-rule-preset-recommend", rule: creator, options: {} }] },
    },
  });
  return messages.map(({ range }) => text.slice(range[0], range[1]));
}
