"""Small Excel workbooks, written part by part."""

import zipfile

MAIN = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
STRICT = 'xmlns="http://purl.oclc.org/ooxml/spreadsheetml/main"'
LINKS = 'xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"'
TEXTS = "<si><t>name</t></si><si><r><t>si</t></r><r><t>ze</t></r><rPh><t>pronounced</t></rPh></si><si><t/></si>"
ROWS = """
<row r="1"><c r="A1" t="s"><v>0</v></c><c r="B1" t="s"><v>1</v></c>
<c r="AA1" t="inlineStr"><is><t>note</t></is></c></row>
<row r="2"><c r="A2" t="inlineStr"><is><t>Ann &amp; Bob</t></is></c><c r="B2" s="1"><v>1.5E-2</v></c></row>
<row r="4"><c r="A4" t="str"><f>B2</f><v>x</v></c><c r="B4"/><c r="AA4" t="b"><v>1</v></c></row>
<row r="5"><c r="A5" t="s"><v>2</v></c></row>
<row><c t="inlineStr"><is><t>last</t></is></c><c><v>-7</v></c></row>
"""


def parts_of(rows=ROWS, texts=TEXTS, target="worksheets/sheet1.xml", namespace=MAIN):
    """The parts of a workbook with a first sheet (by order, not by id) of these rows."""
    return {
        "xl/workbook.xml": f'<workbook {namespace} {LINKS}><sheets><sheet name="S" sheetId="9" r:id="rId2"/>'
        '<sheet name="T" sheetId="1" r:id="rId1"/></sheets></workbook>',
        "xl/_rels/workbook.xml.rels": '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/'
        f'relationships"><Relationship Id="rId1" Target="worksheets/other.xml"/><Relationship Id="rId2" '
        f'Target="{target}"/></Relationships>',
        "xl/sharedStrings.xml": f"<sst {namespace}>{texts}</sst>",
        "xl/worksheets/sheet1.xml": f"<worksheet {namespace}><sheetData>{rows}</sheetData></worksheet>",
        "xl/worksheets/other.xml": f"<worksheet {namespace}><sheetData/></worksheet>",
    }


def write_workbook(path, parts):
    """The parts as an .xlsx file."""
    with zipfile.ZipFile(path, "w") as book:
        for name, part in parts.items():
            book.writestr(name, part)
    return path
