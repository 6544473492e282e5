export type Json = null | boolean | number | string | Json[] | { [name: string]: Json }

export interface Setting {
  /** Dotted, as `moot config set` takes it. */
  key: string
  value: Json
  /** What decides it: `default`, `environment MOOT_…`, `user …/config.yaml:3`. */
  origin: string
}

/** Every value in force with what decides it; lists and empty mappings whole. */
export function settingsOf(
  config: Record<string, Json>,
  origin: Readonly<Record<string, string>>,
  prefix = '',
): Setting[] {
  return Object.entries(config).flatMap(([name, value]) => {
    const key = prefix ? `${prefix}.${name}` : name
    if (value !== null && typeof value === 'object' && !Array.isArray(value) && Object.keys(value).length > 0) {
      return settingsOf(value, origin, key)
    }
    return [{ key, value, origin: deciding(key, origin) }]
  })
}

function deciding(key: string, origin: Readonly<Record<string, string>>): string {
  for (let at = key; at; at = at.slice(0, Math.max(0, at.lastIndexOf('.')))) {
    const found = origin[at]
    if (found !== undefined) return found
  }
  return 'default'
}

/** A value as a person would write it. */
export function written(value: Json): string {
  return typeof value === 'string' ? value : JSON.stringify(value)
}

/** Whether a value can be written in one field. */
export function isSimple(value: Json): boolean {
  return value === null || typeof value !== 'object'
}

/** What was typed, as the kind of value that stood there: a number stays one, and text stays text whatever it looks like. */
export function read(text: string, before: Json): Json {
  if (typeof before === 'boolean') return text === 'true' ? true : text === 'false' ? false : text
  if (typeof before !== 'number') return text
  return text.trim() !== '' && Number.isFinite(Number(text)) ? Number(text) : text
}

/** Whether a value is shown with a secret struck out: what stands there is not what is written. */
export function hidesSecret(value: Json): boolean {
  return typeof value === 'string' && value.includes('•••')
}

/** The layer that decides, and the place in it: `user`, `/home/ada/config.yaml:3`. */
export function layerOf(origin: string): [layer: string, place: string] {
  const at = origin.indexOf(' ')
  return at < 0 ? [origin, ''] : [origin.slice(0, at), origin.slice(at + 1)]
}
