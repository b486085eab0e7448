import type { ImageBlock, TextBlock, ToolResultMessage } from "../../core/messages.ts";
import type { Change, StepResult, TranscriptMessage, TranscriptPolicy } from "../contract.ts";
import type { Recorder } from "../derive.ts";
import { derive, insertMessage } from "../derive.ts";
import { movedImagesPrefix } from "./sanitize-images.ts";
import { shortName } from "./settle-image.ts";

const shownBelow = "[image: shown below]";

/**
 * Where a result may hold no image, and where it tells of a failure, its images go out in a user turn behind the
 * whole group of results, by the name of the tool and the call. Comes when every result is in its place.
 */
export function moveResultImages(
  messages: readonly TranscriptMessage[],
  { policy, record }: { readonly policy: TranscriptPolicy; readonly record: Recorder },
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
        record("image_moved", `Images of the result of ${name} (${images.length}) stand behind it.`, message),
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
