import fc from "fast-check";
import { expect, test } from "vitest";
import { readBase64 } from "./settle-image.ts";

test("base64 is read as it was written", () => {
  fc.assert(
    fc.property(fc.uint8Array({ minLength: 1 }), (bytes) => {
      const text = Buffer.from(bytes).toString("base64");
      expect(readBase64(text)).toEqual({ bytes: Buffer.from(bytes), isExact: true });
      expect(readBase64(Buffer.from(bytes).toString("base64url"))?.bytes).toEqual(Buffer.from(bytes));
      expect(readBase64(`data:image/png;base64,${text.replace(/.{3}/g, "$&\n")}`)).toEqual({
        bytes: Buffer.from(bytes),
        isExact: false,
      });
    }),
  );
});

test("any other text is none; exact is only what would be written again", () => {
  const text = fc.oneof(
    fc.string({ unit: "binary" }),
    fc.string({ unit: fc.constantFrom(..."AZaz09+/=-_ \nŁ") }),
  );
  fc.assert(
    fc.property(text, (each) => {
      const read = readBase64(each);
      if (read?.isExact === true) expect(read.bytes.toString("base64")).toBe(each);
      else expect(/^(?:[A-Za-z0-9+/]{4})+$/.test(each)).toBe(false);
    }),
  );
});

test.each(["", "=", "====", "A", "A===", "AA=A", "AAAAA", "ŁŁŁŁ", "AA\0A", "data:image/png;base64"])(
  "%j is none",
  (text) => {
    expect(readBase64(text)).toBeNull();
  },
);

test("twenty megabytes are read without running out of stack", () => {
  const text = "A".repeat(20_000_000);
  expect(readBase64(text)?.bytes).toHaveLength(15_000_000);
  expect(readBase64(`${text}!!!!`)).toBeNull();
});
