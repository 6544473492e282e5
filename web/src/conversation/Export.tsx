import { Check, Copy, Download, Printer } from 'lucide-react'
import { useState } from 'react'
import { address, send } from '@/api/client'
import { type ExportFormat, useExportFormats } from '@/data/sharing'
import { text } from '@/text'
import { Button } from '@/ui/Button'
import { useCopy } from '@/ui/copy'
import { Dialog } from '@/ui/Dialog'
import { Failed, Loading } from '@/ui/States'
import { notifyError } from '@/ui/toasts'

interface Props {
  conversation: string
  onClose: () => void
}

/** The export dialog: Markdown and PDF first, then all formats with what each one preserves. */
export default function Export({ conversation, onClose }: Props) {
  const { data, error, refetch } = useExportFormats()
  const [share, setShare] = useState(false)
  const [chosen, setChosen] = useState('html')
  const { copied, copy } = useCopy()
  const forms = data?.data.filter((form) => !share || form.shareable) ?? []
  const form = forms.find((one) => one.id === chosen) ?? forms[0]
  const path = `/conversations/${encodeURIComponent(conversation)}/export`
  const copyMarkdown = async () =>
    copy(await (await send('GET', path, undefined, { query: { format: 'md', share } })).text())
  return (
    <Dialog title={text.export.title} onClose={onClose}>
      <div className="space-y-4 overflow-y-auto p-5">
        <div className="flex flex-wrap gap-2 max-sm:flex-col">
          <Button onClick={() => void copyMarkdown().catch(notifyError)}>
            {copied ? <Check size={15} aria-hidden /> : <Copy size={15} aria-hidden />}
            {copied ? text.common.copied : text.export.copyMarkdown}
          </Button>
          <Button onClick={() => download(address(path, { format: 'md', share }))}>
            <Download size={15} aria-hidden />
            {text.export.markdown}
          </Button>
          <Button onClick={() => print(address(path, { format: 'html', share, branches: false, view: true }))}>
            <Printer size={15} aria-hidden />
            {text.export.print}
          </Button>
        </div>
        <label className="flex min-h-9 cursor-pointer items-center gap-3 px-2 text-sm max-md:min-h-11">
          <input
            type="checkbox"
            checked={share}
            onChange={(event) => setShare(event.target.checked)}
            className="size-4 shrink-0 accent-accent"
          />
          {text.export.redact}
        </label>
        {error ? <Failed error={error} retry={() => void refetch()} /> : !data && <Loading rows={4} />}
        {form && (
          <>
            <fieldset className="border-t border-line pt-3">
              <legend className="sr-only">{text.export.format}</legend>
              {forms.map((one) => (
                <label
                  key={one.id}
                  className="flex min-h-11 cursor-pointer items-start gap-3 rounded-lg px-2 py-1.5 text-sm hover:bg-hover"
                >
                  <input
                    type="radio"
                    name="format"
                    value={one.id}
                    checked={one.id === form.id}
                    onChange={() => setChosen(one.id)}
                    className="mt-0.5 size-4 shrink-0 accent-accent"
                  />
                  <span>
                    <span className="font-medium">{one.id}</span> <span className="text-muted">{one.words}</span>
                    {one.id === form.id && <Preserved form={one} />}
                  </span>
                </label>
              ))}
            </fieldset>
            <div className="flex justify-end gap-2">
              <Button onClick={onClose}>{text.common.cancel}</Button>
              <Button
                look="primary"
                onClick={() => {
                  download(address(path, { format: form.id, share }))
                  onClose()
                }}
              >
                {text.common.download}
              </Button>
            </div>
          </>
        )}
      </div>
    </Dialog>
  )
}

function Preserved({ form }: { form: ExportFormat }) {
  if (!form.kept.length) return null
  return (
    <span className="mt-0.5 block text-xs text-muted">
      {text.export.keeps(form.kept)}
      {form.approximated.length > 0 && text.export.converts(form.approximated)}
    </span>
  )
}

function download(url: string) {
  const link = document.createElement('a')
  link.href = url
  link.download = ''
  link.click()
}

/** Open the browser's print dialog for an exported page, which can also save it as PDF. */
function print(url: string) {
  const frame = document.createElement('iframe')
  frame.className = 'invisible fixed size-0'
  frame.title = text.export.print
  frame.tabIndex = -1
  frame.onload = () => {
    const view = frame.contentWindow
    if (!view || frame.contentDocument?.contentType !== 'text/html') {
      frame.remove()
      notifyError(new Error(text.export.printFailed))
      return
    }
    view.addEventListener('afterprint', () => frame.remove())
    view.print()
  }
  frame.src = url
  document.body.append(frame)
}
