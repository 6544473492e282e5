import { expect, test } from 'vitest'
import { diffLines, filesOf, numbersOf } from '@/conversation/tools/diff'

test('the output of git diff is split into files, and each diff has its own lines only', () => {
  const diff = `diff --git a/old.py b/old.py
index 1..2 100644
--- a/old.py
+++ b/old.py
@@ -1,2 +1,2 @@
-diff --git a/x b/x
+--- a/y
 same
diff --git a/gone.txt b/gone.txt
deleted file mode 100644
--- a/gone.txt
+++ /dev/null
@@ -1 +0,0 @@
-last
diff --git a/from name b/to name
similarity index 100%
rename from from name
rename to to name
diff --git a/picture.png b/picture.png
Binary files a/picture.png and b/picture.png differ
`
  const files = filesOf(diff)
  expect(files.map(({ path }) => path)).toEqual(['old.py', 'gone.txt', 'to name', 'picture.png'])
  expect(files[0]?.lines).toEqual([
    { kind: 'hunk', text: '@@ -1,2 +1,2 @@' },
    { kind: 'del', text: 'diff --git a/x b/x' },
    { kind: 'add', text: '--- a/y' },
    { kind: 'same', text: 'same' },
  ])
  expect(files[3]?.lines.at(-1)).toEqual({
    kind: 'same',
    text: 'Binary files a/picture.png and b/picture.png differ',
  })
  expect(filesOf('')).toEqual([])
})

test('each line has its number in the new file, and a removed line its number in the old one', () => {
  const diff = `--- now
+++ then
@@ -7,3 +7,3 @@ def main():
 seven
-eight
+EIGHT
 nine
@@ -20 +20,2 @@
 twenty
+more
\\ No newline at end of file
`
  expect(numbersOf(diffLines(diff))).toEqual([null, 7, 8, 8, 9, null, 20, 21, null])
  expect(diffLines(diff).at(-1)).toEqual({ kind: 'hunk', text: 'No newline at end of file' })
  expect(numbersOf(diffLines('@@ -0,0 +1,2 @@\n+one\n+two'))).toEqual([null, 1, 2])
  expect(
    numbersOf([
      { kind: 'hunk', text: '@@' },
      { kind: 'add', text: 'x' },
    ]),
  ).toEqual([null, null])
})
