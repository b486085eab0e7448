import { decodeBase64 } from "../base64.ts";
import type { Refusal, TwinLimits } from "../contract.ts";
import { readImageHead } from "../image-bytes.ts";
import type { PlacedImage } from "./images.ts";
import { refuse } from "./refusal.ts";

const mimeTypes = ["image/jpeg", "image/png", "image/gif", "image/webp"];
/** Of the base64, not of the image: a published refusal counts `6275800 bytes` for a file of 4.7 million. */
const mostBytes = 5 * 1024 * 1024;
const mostPixels = 8000;
const mostPixelsOfMany = 2000;
const many = 20;

/** "Vision" › General limits. */
export function checkImages(images: readonly PlacedImage[], limits: TwinLimits): Refusal | null {
  // 100 images for a window of 200,000 tokens, 600 for larger ones.
  const most = limits.contextWindow > 200_000 ? 600 : 100;
  if (images.length > most) {
    const message = `Too much media: 0 document pages + ${images.length} images > ${most}`;
    return refuse("too_many_images", message);
  }
  const longestSide = images.length > many ? mostPixelsOfMany : mostPixels;
  for (const image of images) {
    const refusal = checkImage(image, longestSide);
    if (refusal !== null) return refusal;
  }
  return null;
}

function checkImage({ place, source }: PlacedImage, longestSide: number): Refusal | null {
  if (source === null) return refuse("image_form", `${place}.source: Field required`);
  if (source.type === "url" || source.type === "file") return null;
  if (source.type !== "base64") {
    const found = `Input tag '${String(source.type)}' found using 'type' does not match any of the expected tags`;
    return refuse("image_form", `${place}.source: ${found}: 'base64', 'file', 'url'`);
  }
  const { data, media_type: mimeType } = source;
  if (typeof mimeType !== "string" || !mimeTypes.includes(mimeType)) {
    const message = "Input should be 'image/jpeg', 'image/png', 'image/gif' or 'image/webp'";
    return refuse("image_type", `${place}.source.base64.media_type: ${message}`);
  }
  if (typeof data !== "string") return refuse("image_form", `${place}.source.base64.data: Field required`);
  return checkBytes(data, mimeType, `${place}.source.base64`, longestSide);
}

function checkBytes(data: string, mimeType: string, place: string, longestSide: number): Refusal | null {
  if (data === "") return refuse("image_empty", `${place}: image cannot be empty`);
  if (data.length > mostBytes) {
    const message = `image exceeds 5 MB maximum: ${data.length} bytes > ${mostBytes} bytes`;
    return refuse("image_too_large", `${place}: ${message}`);
  }
  const bytes = decodeBase64(data);
  if (bytes === null) return refuse("image_base64", `${place}: invalid base64 data`);
  const head = readImageHead(bytes);
  if (head === null) return refuse("image_unreadable", "Could not process image");
  if (head.mimeType !== mimeType) {
    const found = `The image was specified using the ${mimeType} media type`;
    return refuse(
      "image_type_mismatch",
      `${place}: ${found}, but the image appears to be a ${head.mimeType} image`,
    );
  }
  if (Math.max(head.width, head.height) <= longestSide) return null;
  const ofMany = longestSide === mostPixels ? "" : " for many-image requests";
  const message = `At least one of the image dimensions exceed max allowed size${ofMany}: ${longestSide} pixels`;
  return refuse("image_dimensions", `${place}.data: ${message}`);
}
