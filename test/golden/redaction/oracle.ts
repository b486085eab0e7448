import { lintSource } from "@secretlint/core";
import { creator } from "@secretlint/secretlint-rule-preset-recommend";

/** The ranges that secretlint's recommended preset reports as secrets in a text. */
export async function secretlintFinds(text: string): Promise<string[]> {
  const { messages } = await lintSource({
    source: { filePath: "/corpus.txt", content: text, contentType: "text", ext: ".txt" },
    options: {
      config: { rules: [{ id: "@secretlint/secretlint-rule-preset-recommend", rule: creator, options: {} }] },
    },
  });
  return messages.map(({ range }) => text.slice(range[0], range[1]));
}
