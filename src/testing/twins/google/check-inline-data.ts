import { decodeProtoBytes } from "../base64.ts";
import type { Refusal } from "../contract.ts";
import { readImageHead } from "../image-bytes.ts";
import type { PlacedData } from "./inline-data.ts";
import { refuse, refuseField } from "./refusal.ts";

/** "Image understanding" › Supported image formats: no GIF among them. */
const images = ["image/png", "image/jpeg", "image/webp", "image/heic", "image/heif"];
/** "Document", "Audio" and "Video understanding": what else is taken. */
const others = ["application/pdf", "application/json", "application/rtf", "application/xml"];
const families = ["audio/", "video/", "text/"];

export function checkInlineData(data: readonly PlacedData[]): Refusal | null {
  for (const each of data) {
    const refusal = checkBlob(each);
    if (refusal !== null) return refusal;
  }
  return null;
}

/** Published refusals: "Unsupported MIME type", "Base64 decoding failed", "Unable to process input image." */
function checkBlob({ place, blob }: PlacedData): Refusal | null {
  const { mimeType, data } = blob;
  if (typeof mimeType !== "string" || mimeType === "") {
    return refuse("mime_type", `* GenerateContentRequest.${place}.mime_type: mime_type is not specified\n`);
  }
  const isImage = images.includes(mimeType);
  if (!isImage && !others.includes(mimeType) && !families.some((each) => mimeType.startsWith(each))) {
    return refuse("mime_type", `Unsupported MIME type: ${mimeType}`);
  }
  const bytes = typeof data === "string" ? decodeProtoBytes(data) : null;
  if (bytes === null) {
    const field = `${place}.data`;
    const found = `Base64 decoding failed for ${JSON.stringify(String(data).slice(0, 40))}`;
    return refuseField("data_base64", field, `Invalid value at '${field}' (TYPE_BYTES), ${found}`);
  }
  if (bytes.length === 0) {
    return refuse("data_empty", `* GenerateContentRequest.${place}.data: data must not be empty.\n`);
  }
  if (!isImage || readImageHead(bytes) !== null) return null;
  const advice = "Please retry or report in https://developers.generativeai.google/guide/troubleshooting";
  return refuse("image_unreadable", `Unable to process input image. ${advice}`);
}
