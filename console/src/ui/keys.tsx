import { useEffect, useEffectEvent } from "react";
import styles from "./keys.module.css";
import { readStored, writeStored } from "./stored.ts";

/** Whether a key press belongs to a field that is being typed in. */
export function isTyping({ target }: { readonly target: EventTarget | null }): boolean {
  return target instanceof HTMLElement && (target.isContentEditable || target.matches(fields));
}

/** Whether a key press belongs to an input method. 229: also where `isComposing` is late. */
export function isInputMethod(event: {
  readonly nativeEvent: KeyboardEvent;
  readonly keyCode: number;
}): boolean {
  return event.nativeEvent.isComposing || event.keyCode === 229;
}

const fields = "textarea, select, input:not([type=checkbox], [type=radio])";

const slot = "skein.keys";

/** Single-letter keys can be switched off, because they collide with some speech and switch inputs. */
export function hasLetterKeys(): boolean {
  return readStored(slot) !== "off";
}

export function setLetterKeys(isOn: boolean): void {
  writeStored(slot, isOn ? null : "off");
}

/**
 * Keys of a page, wherever the focus is, except in a text field or a dialog. `null`: the key does nothing now. A key that is
 * held down acts once, because the next row may have taken the place of the one that it was pressed for.
 */
export function useKeys(keys: Readonly<Record<string, (() => void) | null>>): void {
  const onKey = useEffectEvent((event: KeyboardEvent) => {
    if (event.defaultPrevented || isTyping(event) || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.repeat || (event.key.length === 1 && !hasLetterKeys())) return;
    if (event.target instanceof Element && event.target.closest("[role=dialog]") !== null) return;
    const act = keys[event.key];
    if (act === undefined || act === null) return;
    event.preventDefault();
    act();
  });
  useEffect(() => {
    const listen = (event: KeyboardEvent) => onKey(event);
    addEventListener("keydown", listen);
    return () => removeEventListener("keydown", listen);
  }, []);
}

const isApple = /Mac|iP(?:hone|ad)/.test(navigator.platform);
const symbols: Record<string, string> = {
  Enter: "↵",
  Mod: isApple ? "⌘" : "Ctrl",
  Alt: isApple ? "⌥" : "Alt",
  Shift: "⇧",
  Escape: "Esc",
};

/** The key of a button, shown on it while it works. */
export function Kbd({ keys }: { readonly keys: string }) {
  if (/^[a-z0-9]$/.test(keys) && !hasLetterKeys()) return null;
  return (
    <kbd className={styles.kbd} aria-hidden>
      {keys
        .split("+")
        .map((key) => symbols[key] ?? key)
        .join(isApple ? "" : "+")}
    </kbd>
  );
}
