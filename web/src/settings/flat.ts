export type Json = null | boolean | number | string | Json[] | { [name: string]: Json }

export interface Setting {
  /** The dotted key, as used by `moot config set`. */
  key: string
  value: Json
  /** The source of the value: `default`, `environment MOOT_…`, `user …/config.yaml:3`. */
  origin: string
}

/** Flatten the configuration into settings with their sources. Lists and empty mappings stay whole. */
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

/** Format a value as in a configuration file. */
export function written(value: Json): string {
  return typeof value === 'string' ? value : JSON.stringify(value)
}

/** Return true if the value can be edited in a single field. */
export function isSimple(value: Json): boolean {
  return value === null || typeof value !== 'object'
}

/** Return true if the value is a list of texts, which is edited line by line. */
export function isList(value: Json): value is string[] {
  return Array.isArray(value) && value.every((one) => typeof one === 'string' && isLine(one) && !hidesSecret(one))
}

function isLine(text: string): boolean {
  return text !== '' && text === text.trim() && !text.includes('\n')
}

/** Return true if an empty list of the setting would contain mappings instead of texts. */
export function hasEntries(key: string): boolean {
  return key === 'permissions.rules' || key.startsWith('hooks.')
}

/** Parse an entered value with the type of the previous value, so that text such as `20` stays text. */
export function read(text: string, before: Json): Json {
  if (typeof before === 'boolean') return text === 'true' ? true : text === 'false' ? false : text
  if (before === null && text.trim() === '') return null
  if (typeof before !== 'number' && before !== null) return text
  return text.trim() !== '' && Number.isFinite(Number(text)) ? Number(text) : text
}

/** Return true if the displayed value is masked because it contains a secret. */
export function hidesSecret(value: Json): boolean {
  return typeof value === 'string' && value.includes('•••')
}

/** Split a source into layer and place: `user`, `/home/ada/config.yaml:3`. */
export function layerOf(origin: string): [layer: string, place: string] {
  const at = origin.indexOf(' ')
  return at < 0 ? [origin, ''] : [origin.slice(0, at), origin.slice(at + 1)]
}
