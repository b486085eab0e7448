import { SkeinError } from "../../../core/errors.ts";
import { readImageHeader } from "../../../core/image-header.ts";

export interface Attachment {
  readonly name?: string;
  readonly mimeType: string;
  readonly data: string;
}

/** Attachments as a model can be shown them. Their own bytes say what they are; whatever is no such image is refused. */
export function attachedImages(attachments: readonly Attachment[]): { data: string; mimeType: string }[] {
  return attachments.map((attachment, index) => {
    const header = readImageHeader(Buffer.from(attachment.data, "base64"));
    if (header === null) throw noImage(attachment, index);
    return { data: attachment.data, mimeType: header.mimeType };
  });
}

function noImage({ name, mimeType }: Attachment, index: number): SkeinError {
  const which = name === undefined ? `Attachment ${index + 1}` : `The attachment ${name}`;
  return new SkeinError("invalid_arguments", {
    problem: `${which}, which came as ${mimeType}, is no image that a model can be shown`,
    advice: "PNG, JPEG, GIF and WebP are taken; send one of these, or put what it says into the message",
  });
}
