import type { ContentBlock } from "@agentclientprotocol/sdk/unstable";

/**
 * The system prompt of a session for an agent that has no place of its own for it: a block of the prompt, told whenever it is
 * another than the agent was told before. Where the prompt is a command of the agent's own (`/compact`), it stands behind it.
 */
export function withSystem(
  prompt: readonly ContentBlock[],
  system: string | null,
  told: string | null,
): ContentBlock[] {
  if (system === told) return [...prompt];
  const [first] = prompt;
  const isCommand = first?.type === "text" && first.text.trimStart().startsWith("/");
  const text = system === null ? over : words(system);
  return isCommand
    ? [...prompt, { type: "text", text: `\n\n${text}` }]
    : [{ type: "text", text: prompt.length === 0 ? text : `${text}\n\n` }, ...prompt];
}

const over = "[Skein] The instructions that you were given before no longer hold.";

function words(system: string): string {
  return [
    "[Skein] Instructions for you, in place of any that were given here before:",
    system,
    "[Skein] End of the instructions.",
  ].join("\n\n");
}
