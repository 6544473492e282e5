// Renders /openapi.json. All text is set with textContent; nothing is parsed as markup.
'use strict'

const METHODS = ['get', 'post', 'put', 'patch', 'delete', 'head', 'options']
const DEPTH = 4
const LONGEST = 200_000 // characters of a response that are shown

const at = (id) => document.getElementById(id)

function make(tag, { text, ...attributes } = {}, children = []) {
  const element = document.createElement(tag)
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value)
  if (text !== undefined) element.textContent = text
  element.append(...children)
  return element
}

// Return a text as nodes, with its parts in backticks as code.
const prose = (text) => text.split('`').map((piece, number) => (number % 2 ? make('code', { text: piece }) : piece))

const paragraphs = (text) => text.split('\n\n').map((piece) => make('p', {}, prose(piece)))

const schemaName = (reference) => reference.split('/').pop()

function follow(root, reference) {
  return reference.slice(2).split('/').reduce((node, step) => node?.[step], root)
}

// Return a readable outline of a schema: type names, with one line per object field.
function outline(root, schema, depth = 0) {
  if (!schema) return 'anything'
  if (schema.$ref) return depth >= DEPTH ? schemaName(schema.$ref) : outline(root, follow(root, schema.$ref), depth)
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(' | ')
  if ('const' in schema) return JSON.stringify(schema.const)
  const choices = schema.anyOf ?? schema.oneOf
  if (choices) return choices.map((choice) => outline(root, choice, depth + 1)).join(' | ')
  if (schema.type === 'array') return `[${outline(root, schema.items, depth + 1)}]`
  if (schema.type === 'object' && schema.properties) return object(root, schema, depth)
  return schema.format ? `${schema.type} (${schema.format})` : String(schema.type ?? 'anything')
}

function object(root, schema, depth) {
  if (depth >= DEPTH) return schema.title ?? 'object'
  const indent = '  '.repeat(depth + 1)
  const lines = Object.entries(schema.properties).map(([name, property]) => {
    const optional = schema.required?.includes(name) ? '' : '?'
    const comment = property.description ? `  // ${property.description.replaceAll('\n', ' ')}` : ''
    return `${indent}${name}${optional}: ${outline(root, property, depth + 1)}${comment}`
  })
  return `{\n${lines.join('\n')}\n${'  '.repeat(depth)}}`
}

function sample(title, text) {
  const copy = make('button', { type: 'button', class: 'copy', text: 'Copy' })
  copy.addEventListener('click', () => navigator.clipboard.writeText(text).then(() => (copy.textContent = 'Copied')))
  return make('figure', {}, [make('figcaption', {}, [make('span', { text: title }), copy]), make('pre', { text })])
}

const shown = (value) => (typeof value === 'string' ? value : JSON.stringify(value, null, 2))

function contents(root, title, content) {
  return Object.entries(content ?? {}).flatMap(([type, { schema, example }]) => [
    make('h3', { text: `${title} (${type})` }),
    ...(example === undefined ? [] : [make('pre', { text: shown(example) })]),
    make('details', { class: 'schema' }, [make('summary', { text: 'Schema' }), make('pre', { text: outline(root, schema) })]),
  ])
}

function parameters(root, list) {
  if (!list.length) return []
  const rows = list.map((each) =>
    make('tr', {}, [
      make('td', {}, [make('code', { text: each.name + (each.required ? '' : '?') })]),
      make('td', { text: each.in }),
      make('td', {}, [make('code', { text: outline(root, each.schema) })]),
      make('td', {}, prose(each.description ?? '')),
    ]),
  )
  return [make('h3', { text: 'Parameters' }), make('table', {}, [make('tbody', {}, rows)])]
}

function responsesOf(root, responses) {
  return Object.entries(responses).flatMap(([status, response]) => {
    if (response.$ref) return [] // errors have the same format everywhere
    const found = contents(root, `Response ${status}`, response.content)
    return found.length ? found : [make('h3', { text: `Response ${status}: no content` })]
  })
}

// ── code samples ──────────────────────────────────────────────────────────────────────────────────────────────────────

function exampleRequest(path, method, details) {
  const required = (details.parameters ?? []).filter((each) => each.required)
  const values = Object.fromEntries(required.map((each) => [each.name, String(each.example)]))
  const [type, content] = Object.entries(details.requestBody?.content ?? {})[0] ?? []
  return { ...address(path, required, values), method: method.toUpperCase(), type, body: content?.example }
}

function address(path, list, values) {
  const filled = path.replace(/\{([^}]+)\}/g, (_, name) => encodeURIComponent(values[name] ?? ''))
  const query = new URLSearchParams()
  const headers = {}
  for (const each of list) {
    const value = values[each.name]
    if (value === undefined || value === '') continue
    if (each.in === 'query') for (const one of isListOf(each) ? value.split(',') : [value]) query.append(each.name, one)
    if (each.in === 'header') headers[each.name] = value
  }
  return { url: location.origin + filled + (query.size ? `?${query}` : ''), headers }
}

/** Whether a parameter may be given several times. */
const isListOf = ({ schema }) => [schema, ...(schema.anyOf ?? [])].some(({ type }) => type === 'array')

const shell = (text) => `'${text.replaceAll("'", `'\\''`)}'`

function curl({ url, method, type, body }, scope) {
  const lines = [`curl ${method === 'GET' ? '' : method === 'HEAD' ? '--head ' : `-X ${method} `}${shell(url)}`]
  if (scope) lines.push('-H "Authorization: Bearer $MOOT_TOKEN"')
  if (body !== undefined) lines.push("-H 'Content-Type: application/json'", `-d ${shell(JSON.stringify(body))}`)
  else if (type) lines.push("-H 'Content-Type: application/octet-stream'", '--data-binary @FILE')
  return lines.join(' \\\n  ')
}

function pythonValue(value, indent = '    ') {
  if (value === null) return 'None'
  if (typeof value === 'boolean') return value ? 'True' : 'False'
  if (typeof value !== 'object') return JSON.stringify(value)
  const inner = `${indent}    `
  const items = Array.isArray(value)
    ? value.map((item) => inner + pythonValue(item, inner))
    : Object.entries(value).map(([name, item]) => `${inner}${JSON.stringify(name)}: ${pythonValue(item, inner)}`)
  const [open, close] = Array.isArray(value) ? '[]' : '{}'
  return items.length ? `${open}\n${items.join(',\n')},\n${indent}${close}` : open + close
}

function python({ url, method, type, body }, scope, streams) {
  const given = [`"${method}"`, JSON.stringify(url)]
  if (scope) given.push('headers={"Authorization": f"Bearer {os.environ[\'MOOT_TOKEN\']}"}')
  if (body !== undefined) given.push(`json=${pythonValue(body)}`)
  else if (type) given.push('content=open("FILE", "rb")')
  if (streams) given.push('timeout=None')
  const call = `(\n    ${given.join(',\n    ')},\n)`
  const head = `${scope ? 'import os\n\n' : ''}import httpx\n\n`
  if (streams) return `${head}with httpx.stream${call} as response:\n    for line in response.iter_lines():\n        print(line)`
  return `${head}response = httpx.request${call}\nresponse.raise_for_status()\nprint(response.text)`
}

function typescript({ url, method, type, body }, scope, streams) {
  const headers = []
  if (scope) headers.push('authorization: `Bearer ${process.env.MOOT_TOKEN}`')
  if (body !== undefined) headers.push("'content-type': 'application/json'")
  const options = [`  method: '${method}',`]
  if (headers.length) options.push(`  headers: { ${headers.join(', ')} },`)
  if (body !== undefined) options.push(`  body: JSON.stringify(${JSON.stringify(body, null, 2).replaceAll('\n', '\n  ')}),`)
  else if (type) options.push("  body: await readFile('FILE'),")
  const call = `const response = await fetch('${url}', {\n${options.join('\n')}\n})`
  const head = body === undefined && type ? "import { readFile } from 'node:fs/promises'\n\n" : ''
  const check = 'if (!response.ok) throw new Error(await response.text())'
  const read = streams
    ? 'for await (const text of response.body!.pipeThrough(new TextDecoderStream())) console.log(text)'
    : 'console.log(await response.text())'
  return `${head}${call}\n${check}\n${read}`
}

function samples(path, method, details) {
  const scope = details.security?.[0]?.token?.[0]
  const types = Object.keys(details.responses?.[200]?.content ?? {})
  const streams = types.length === 1 && types[0] === 'text/event-stream'
  const request = exampleRequest(path, method, details)
  const kinds = { curl: curl(request, scope), Python: python(request, scope, streams), TypeScript: typescript(request, scope, streams) }
  const tabs = make('div', { class: 'tabs', role: 'group', 'aria-label': 'Language of the example' })
  const place = make('div')
  for (const [name, text] of Object.entries(kinds)) {
    const tab = make('button', { type: 'button', text: name, 'aria-pressed': String(name === 'curl') })
    tab.addEventListener('click', () => {
      for (const each of tabs.children) each.setAttribute('aria-pressed', String(each === tab))
      place.replaceChildren(sample(name, text))
    })
    tabs.append(tab)
  }
  place.append(sample('curl', kinds.curl))
  return [make('h3', { text: 'Example' }), tabs, place]
}

// ── trying an operation ───────────────────────────────────────────────────────────────────────────────────────────────

let token = ''

function field(id, label, input) {
  input.setAttribute('id', id)
  return make('p', { class: 'field' }, [make('label', { for: id, text: label }), input])
}

function trial(path, method, details) {
  const name = details.operationId
  const list = (details.parameters ?? []).filter((each) => each.name !== 'Idempotency-Key')
  const inputs = list.map((each) => {
    const input = make('input', { autocomplete: 'off', placeholder: each.example === undefined ? '' : String(each.example) })
    input.required = each.in === 'path'
    return [each.name, field(`${name}-${each.name}`, `${each.name}${each.required ? '' : ' (optional)'}${isListOf(each) ? ', separated by commas' : ''}`, input), input]
  })
  const [type, content] = Object.entries(details.requestBody?.content ?? {})[0] ?? []
  const text = make('textarea', { rows: '8', spellcheck: 'false' })
  const file = make('input', { type: 'file' })
  if (content?.example !== undefined) text.value = shown(content.example)
  const isText = type === 'application/json'
  const send = make('button', { text: `Send ${method.toUpperCase()}` })
  const stop = make('button', { type: 'button', text: 'Stop', hidden: '' })
  const status = make('p', { role: 'status', class: 'dim' })
  const result = make('pre', { hidden: '', tabindex: '0', 'aria-label': 'Response' })
  const form = make('form', { class: 'trial' }, [
    ...inputs.map(([, element]) => element),
    ...(type ? [field(`${name}-body`, isText ? 'Body' : 'File', isText ? text : file)] : []),
    make('p', {}, [send, ' ', stop]),
    status,
    result,
  ])
  form.addEventListener('submit', async (event) => {
    event.preventDefault()
    const values = Object.fromEntries(inputs.map(([each, , input]) => [each, input.value.trim()]))
    const { url, headers } = address(path, list, values)
    if (token) headers.authorization = `Bearer ${token}`
    if (type) headers['content-type'] = isText ? type : 'application/octet-stream'
    const ending = new AbortController()
    stop.onclick = () => ending.abort()
    send.disabled = true
    stop.hidden = false
    result.hidden = true
    result.textContent = ''
    status.textContent = 'Sending …'
    const started = performance.now()
    try {
      const body = type ? (isText ? text.value : (file.files[0] ?? '')) : undefined
      const response = await fetch(url, { method: method.toUpperCase(), headers, body, signal: ending.signal })
      status.textContent = `${response.status} ${response.statusText} after ${Math.round(performance.now() - started)} ms`
      await read(response, result)
    } catch (error) {
      status.textContent = ending.signal.aborted ? 'Stopped.' : `No response: ${error.message}`
    } finally {
      send.disabled = false
      stop.hidden = true
    }
  })
  return [make('details', { class: 'schema' }, [make('summary', { text: 'Try it' }), make('p', { class: 'dim', text: tryNote(method) }), form])]
}

const tryNote = (method) =>
  method === 'get' || method === 'head' ? 'Sends the request to this server.' : 'Sends the request to this server and changes its data.'

// Show a response as it arrives, JSON in a readable form at the end.
async function read(response, place) {
  const type = response.headers.get('content-type') ?? ''
  if (!response.body || response.status === 204) return
  place.hidden = false
  if (!/json|text|event-stream/.test(type)) {
    place.textContent = `${(await response.blob()).size} bytes of ${type}`
    return
  }
  let whole = ''
  let length = 0
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader()
  for (;;) {
    const { done, value } = await reader.read()
    if (done) break
    length += value.length
    whole = (whole + value).slice(-LONGEST) // a stream of events may have no end
    place.textContent = length > LONGEST ? `… (the last ${LONGEST} of ${length} characters)\n${whole}` : whole
  }
  if (length <= LONGEST && /[/+]json(;|$)/.test(type)) place.textContent = JSON.stringify(JSON.parse(whole), null, 2)
}

// ── the list ──────────────────────────────────────────────────────────────────────────────────────────────────────────

function operation(root, path, method, details) {
  const scope = details.security?.[0]?.token?.[0]
  const summary = make('summary', {}, [
    make('span', { class: 'method', text: method.toUpperCase() }),
    make('span', { class: 'path', text: path }),
    make('span', { class: 'dim' }, prose(details.summary ?? '')),
  ])
  const element = make('details', { id: details.operationId }, [summary])
  // built when it is opened, because there are hundreds
  element.addEventListener('toggle', () => {
    if (!element.open || element.children.length > 1) return
    const body = make('div', {}, [make('p', { class: 'dim', text: scope ? `Requires a token with the scope ${scope}.` : 'No token required.' })])
    if (details.description) body.append(...paragraphs(details.description))
    body.append(...samples(path, method, details), ...trial(path, method, details))
    body.append(...parameters(root, details.parameters ?? []))
    body.append(...contents(root, 'Body', details.requestBody?.content))
    body.append(...responsesOf(root, details.responses ?? {}))
    element.append(body)
  })
  element.words = `${method} ${path} ${details.summary ?? ''} ${details.description ?? ''}`.toLowerCase()
  return element
}

function show(root) {
  at('version').textContent = root.info.version
  at('about').replaceChildren(...paragraphs(root.info.description))
  const groups = new Map()
  for (const [path, operations] of Object.entries(root.paths)) {
    for (const method of METHODS.filter((each) => operations[each])) {
      const details = operations[method]
      const tag = details.tags?.[0] ?? 'other'
      if (!groups.has(tag)) groups.set(tag, [])
      groups.get(tag).push(operation(root, path, method, details))
    }
  }
  at('operations').replaceChildren(...[...groups].map(([tag, list]) => make('section', {}, [make('h2', { text: tag }), ...list])))
  at('status').textContent = ''
  filter()
  const linked = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)))
  if (linked) {
    linked.open = true
    linked.scrollIntoView()
  }
}

function filter() {
  const words = at('filter').value.toLowerCase().split(/\s+/).filter(Boolean)
  for (const section of at('operations').children) {
    let any = false
    for (const each of section.querySelectorAll(':scope > details')) {
      each.hidden = !words.every((word) => each.words.includes(word))
      any ||= !each.hidden
    }
    section.hidden = !any
  }
}

async function load() {
  const response = await fetch('/openapi.json', token ? { headers: { authorization: `Bearer ${token}` } } : {})
  at('key').hidden = response.ok
  if (response.ok) return show(await response.json())
  at('status').textContent = token ? 'The token is invalid, expired or revoked.' : ''
}

function fail(error) {
  at('status').textContent = `Could not load the API description: ${error.message}`
}

at('filter').addEventListener('input', filter)
at('key').addEventListener('submit', (event) => {
  event.preventDefault()
  token = at('token').value
  load().catch(fail)
})
load().catch(fail)
