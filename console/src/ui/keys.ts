import { useEffect, useEffectEvent } from "react";

/** Whether a key press belongs to a field that is being typed in. */
export function isTyping({ target }: { readonly target: EventTarget | null }): boolean {
  return target instanceof HTMLElement && (target.isContentEditable || target.matches(fields));
}

const fields = "textarea, select, input:not([type=checkbox], [type=radio])";

const slot = "skein.keys";

/** Single-letter keys can be switched off, because they collide with some speech and switch inputs. */
export function hasLetterKeys(): boolean {
  return localStorage.getItem(slot) !== "off";
}

export function setLetterKeys(isOn: boolean): void {
  if (isOn) localStorage.removeItem(slot);
  else localStorage.setItem(slot, "off");
}

/** Keys of a page, while no field is being typed in. `null`: the key does nothing now. */
export function useKeys(keys: Readonly<Record<string, (() => void) | null>>): void {
  const onKey = useEffectEvent((event: KeyboardEvent) => {
    if (event.defaultPrevented || isTyping(event) || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key.length === 1 && !hasLetterKeys()) return;
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
