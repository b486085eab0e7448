import { test } from "vitest";
import { images } from "../../../../test/support/twin-fetch.ts";
import {
  a,
  call,
  calls,
  chat,
  expectRefusal,
  image,
  result,
  user,
} from "../../../../test/support/twin-mistral.ts";

test.each([
  ["bytes of another type", images.png.replace("png", "webp"), "image_type_mismatch"],
  ["an unsupported type", images.of("image/bmp", Buffer.from("BM")), "image_type_unsupported"],
  ["no base64", "data:image/png;base64,****", "image_not_base64"],
  ["no address", "a.png", "image_not_base64"],
  ["an animated GIF", images.animatedGif, "image_animated"],
  [
    "more than 10 MB",
    images.of("image/jpeg", Buffer.concat([Buffer.from("ffd8ff", "hex"), Buffer.alloc(10.5e6)])),
    "images_too_large",
  ],
])("[TWB22] images: %s", (_, url, rule) => {
  expectRefusal(chat(user([image(url)])), rule, "", "3310");
});

test("[TWB22] a request has eight images at most, in results too", () => {
  const many = (count: number) => Array.from({ length: count }, () => image(images.gif));
  expectRefusal(chat(user(many(8))), null);
  expectRefusal(chat(user(many(4)), calls(call(a)), result(a, many(4))), null);
  const body = chat(user(many(4)), calls(call(a)), result(a, many(5)));
  expectRefusal(body, "too_many_images", "Too many images in request: 9, maximum is 8", "3051");
});
