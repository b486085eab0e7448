import { wireLimits } from "../../../protocol/frames.ts";

/** What is around the content in a frame. */
const around = 64 * 1024;

/** So many bytes of content fit into one frame. */
export const contentBytes = wireLimits.frameBytes - around;
