import type { ImageBlock, TextBlock, ToolResultMessage } from "../../core/messages.ts";
import type { Change, StepResult, TranscriptMessage } from "../contract.ts";
import type { StepOptions } from "../derive.ts";
import { derive, insertMessage } from "../derive.ts";
import { movedImagesPrefix } from "./sanitize-images.ts";
import { shortName } from "./settle-image.ts";

const shownBelow = "[image: shown below]";

/**
 * Moves images out of tool results that cannot contain them, and out of failed results, into a user turn after the
 * whole group of results. Must run after pairing has put each result after its call.
 */
export function moveResultImages(
  messages: readonly TranscriptMessage[],
  { policy, record }: Pick<StepOptions, "policy" | "record">,
): StepResult {
  const goesOut = (message: TranscriptMessage): message is ToolResultMessage =>
    message.role === "toolResult" &&
    (policy.toolResultImages === "behind" || message.isError === true) &&
    message.content.some((block) => block.type === "image");
  if (!messages.some(goesOut)) return { messages, changes: [] };
  const changes: Change[] = [];
  const after: TranscriptMessage[] = [];
  let waiting: (TextBlock | ImageBlock)[] = [];
  for (const [index, message] of messages.entries()) {
    if (goesOut(message)) {
      const images = message.content.filter((block) => block.type === "image");
      const name = `${shortName(message.toolName)} (${shortName(message.toolCallId)})`;
      waiting.push({ type: "text", text: `${movedImagesPrefix}${name}]` }, ...images);
      changes.push(
        record(
          "image_moved",
          `Images from the result of ${name} (${images.length}) are moved after it.`,
          message,
        ),
      );
      after.push(derive(message, { content: message.content.map(withoutImage) }));
    } else {
      after.push(message);
    }
    if (waiting.length === 0 || messages[index + 1]?.role === "toolResult") continue;
    after.push(insertMessage({ role: "user", content: waiting }));
    waiting = [];
  }
  return { messages: after, changes };
}

function withoutImage(block: TextBlock | ImageBlock): TextBlock | ImageBlock {
  return block.type === "image" ? { type: "text", text: shownBelow } : block;
}
